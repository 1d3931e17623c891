"""Dockerfiles as people write them, in the manner of official images, and what the reference says must come of them.

Each case is a Dockerfile, the files of its context, and what is expected: `config` (parts of it), `files` (contents in
the finished image; None = not there), `modes` (owner, group, mode), `said` (words of the output).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pybernetes.cluster.images import oci


@dataclass
class Case:
    name: str
    dockerfile: str
    context: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    modes: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    said: str = ""


CASES = [
    Case(
        "alpine's way: environment, one long command, entrypoint script",
        r"""
FROM busybox:latest

ENV APP_VERSION 3.2.1
ENV APP_HOME=/opt/app \
    PATH=/opt/app/bin:$PATH

# a comment between
RUN set -eux; \
    echo "app:x:1000:" >> /etc/group; \
    # a comment inside
    echo "app:x:999:1000::$APP_HOME:/bin/sh" >> /etc/passwd; \
    \
    mkdir -p "$APP_HOME/bin"; \
    echo "v$APP_VERSION" > "$APP_HOME/version"; \
    chown -R app:app "$APP_HOME"

COPY docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]
EXPOSE 6379
CMD ["redis-server"]
""",
        {"docker-entrypoint.sh": '#!/bin/sh\nexec "$@"\n'},
        config={
            "Env": [
                "PATH=/opt/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "APP_VERSION=3.2.1",
                "APP_HOME=/opt/app",
            ],
            "Entrypoint": ["docker-entrypoint.sh"],
            "Cmd": ["redis-server"],
            "ExposedPorts": {"6379/tcp": {}},
        },
        files={"opt/app/version": "v3.2.1\n"},
        modes={"opt/app/bin": (999, 1000, 0o755)},
    ),
    Case(
        "stages with names, numbers and arguments of platforms",
        """
ARG VARIANT=latest
FROM --platform=$BUILDPLATFORM busybox:${VARIANT} AS build
ARG TARGETOS TARGETARCH
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN cat go.mod go.sum > deps
COPY . .
RUN echo "$TARGETOS/$TARGETARCH $VERSION" > /out

FROM busybox AS assets
RUN echo asset > /asset

FROM scratch
COPY --from=build /out /src/deps /
COPY --from=1 /asset /assets/
USER 65532:65532
ENTRYPOINT ["/out"]
""",
        {"go.mod": "m", "go.sum": "s", "main.go": "x"},
        ("--build-arg", "VERSION=1.0"),
        config={"User": "65532:65532", "Entrypoint": ["/out"]},
        files={
            "out": f"linux/{oci.this_architecture()} 1.0\n",
            "deps": "ms",
            "assets/asset": "asset\n",
            "src/main.go": None,
        },
    ),
    Case(
        "substitutions of every kind",
        r"""
FROM busybox
ARG empty=
ARG set=value
ENV A=${unset:-default} B=${empty:-filled} C=${empty-kept} D=${set:+alt} E=${unset:+alt}x F=${set-other} \
    G=${unset:-${set:-deep}} H=\$set I='$set' J="$set" K=a\ b L="a \"q\" b" M=${set%ue} N=${set#va} O=${set/al/AL} \
    P=$set-$set Q=${set}s R="it's" S='say "hi"' T=C:\\x
ENV U old form with   blanks and $set "quoted"
ENV V=1 W=$V
ENV X=$V
""",
        config={
            "Env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "A=default",
                "B=filled",
                "C=",
                "D=alt",
                "E=x",
                "F=value",
                "G=value",
                "H=$set",
                "I=$set",
                "J=value",
                "K=a b",
                'L=a "q" b',
                "M=val",
                "N=lue",
                "O=vALue",
                "P=value-value",
                "Q=values",
                "R=it's",
                'S=say "hi"',
                "T=C:\\x",
                "U=old form with   blanks and value quoted",
                "V=1",
                "W=",
                "X=1",
            ]
        },
    ),
    Case(
        "arguments: scopes, defaults, precedence of ENV, what RUN sees",
        """
ARG GLOBAL=outer
FROM busybox AS one
ARG GLOBAL
ARG A=1
ENV A=2
ARG B=default
RUN echo "$GLOBAL $A $B ${NEVER:-none}" > /seen
ARG NEVER=later
FROM busybox
RUN echo "${GLOBAL:-unset} ${A:-unset}" > /second
COPY --from=one /seen /seen
""",
        flags=("--build-arg", "A=given", "--build-arg", "B=given"),
        files={"seen": "outer 2 given none\n", "second": "unset unset\n"},
    ),
    Case(
        "a stage that stands on another has its arguments, environment and folder",
        """
FROM busybox AS base
ARG COMMON=shared
ENV KEPT=yes
WORKDIR /work
FROM base AS child
RUN echo "$COMMON $KEPT $PWD" > seen
""",
        files={"work/seen": "shared yes /work\n"},
    ),
    Case(
        "the backtick escapes, and backslashes are paths",
        '# escape=`\nFROM busybox\nENV WIN=C:\\dir`\n B=1\nLABEL path="C:\\x" `\n      b=2\n'
        "RUN echo one; `\n    echo two > /two\n",
        config={"Labels": {"path": "C:\\x", "b": "2"}},
        files={"two": "two\n"},
    ),
    Case(
        "here-documents: scripts, files, several, quoted, with tabs",
        """
# syntax=docker/dockerfile:1
FROM busybox
ARG who=world
RUN <<EOF
set -e
echo "hello $who" > /hello
for i in 1 2; do
  echo $i >> /count
done
EOF
RUN <<-"TABS"
\techo tabs > /tabs
\tTABS
RUN cat <<ONE > /one && cat <<'TWO' > /two
first $who
ONE
second $who
TWO
COPY <<EOF /etc/app.conf
name=$who
price=\\$5
# not a comment
EOF
COPY <<"EOF" /etc/raw.conf
name=$who
EOF
COPY --chmod=0755 --chown=1:2 <<run.sh <<lib.sh /usr/bin/
#!/bin/sh
run.sh
lib
lib.sh
RUN <<EOF
#!/bin/sh -e
echo "$0" | grep -q / && echo shebang > /shebang
EOF
""",
        files={
            "hello": "hello world\n",
            "count": "1\n2\n",
            "tabs": "tabs\n",
            "one": "first world\n",
            "two": "second $who\n",
            "etc/app.conf": "name=world\nprice=$5\n# not a comment\n",
            "etc/raw.conf": "name=$who\n",
            "usr/bin/run.sh": "#!/bin/sh\n",
            "usr/bin/lib.sh": "lib\n",
            "shebang": "shebang\n",
        },
        modes={"usr/bin/run.sh": (1, 2, 0o755)},
    ),
    Case(
        "labels of all forms",
        """
FROM scratch
LABEL "com.example.vendor"="ACME Incorporated"
LABEL com.example.label-with-value="foo"
LABEL version="1.0" description="This text illustrates \\
that label-values can span multiple lines."
LABEL multi.label1="value1" \\
      multi.label2="value2" \\
      other="value3"
LABEL old form here
LABEL single='a b' eq=a=b empty=
""",
        config={
            "Labels": {
                "com.example.vendor": "ACME Incorporated",
                "com.example.label-with-value": "foo",
                "version": "1.0",
                "description": "This text illustrates that label-values can span multiple lines.",
                "multi.label1": "value1",
                "multi.label2": "value2",
                "other": "value3",
                "old": "form here",
                "single": "a b",
                "eq": "a=b",
                "empty": "",
            }
        },
    ),
    Case(
        "users, owners and modes",
        """
FROM busybox
RUN echo "web:x:4000:4000::/home/web:/bin/sh" >> /etc/passwd && echo "staff:x:5000:" >> /etc/group
COPY --chown=web:staff a /by-name/a
COPY --chown=4000 a /by-number/a
COPY --chown=:staff a /by-group/a
COPY --chown=web --chmod=u=rw,go= a /mode/a
COPY --chmod=640 dir /dir
USER web
WORKDIR /home/web/new
RUN touch mine && id -u > uid && echo $HOME > home
COPY a ./root-owned
""",
        {"a": "a", "dir/b": "b", "dir/sub/c": "c"},
        config={"User": "web", "WorkingDir": "/home/web/new"},
        files={"home/web/new/uid": "4000\n", "home/web/new/home": "/home/web\n"},
        modes={
            "by-name/a": (4000, 5000, 0o644),
            "by-number/a": (4000, 4000, 0o644),
            "by-group/a": (0, 5000, 0o644),
            "mode/a": (4000, 4000, 0o600),
            "dir/b": (0, 0, 0o640),
            "home/web/new": (4000, 4000, 0o755),
            "home/web/new/mine": (4000, 4000, 0o644),
            "home/web/new/root-owned": (0, 0, 0o644),
        },
    ),
    Case(
        "copies: folders' contents, patterns, several, folders that are there or not",
        """
FROM busybox
COPY src /app
COPY src/*.txt src/sub/*.md /flat/
COPY src/a?.txt /question/
COPY src/[ab]1.txt /range/
COPY src/a1.txt /renamed
COPY src/a1.txt /etc
COPY src src2 /both/
COPY src/a1.txt relative/deep/
COPY ["src/with blank.txt", "/blank dir/"]
COPY none* /nothing/
""",
        {
            "src/a1.txt": "1",
            "src/b1.txt": "2",
            "src/ab.txt": "3",
            "src/sub/x.md": "4",
            "src/with blank.txt": "5",
            "src2/z": "6",
        },
        files={
            "app/a1.txt": "1",
            "app/sub/x.md": "4",
            "app/src": None,
            "flat/a1.txt": "1",
            "flat/x.md": "4",
            "question/a1.txt": "1",
            "question/ab.txt": "3",
            "question/b1.txt": None,
            "range/b1.txt": "2",
            "renamed": "1",
            "etc/a1.txt": "1",
            "both/z": "6",
            "both/sub/x.md": "4",
            "relative/deep/a1.txt": "1",
            "blank dir/with blank.txt": "5",
        },
        said="'none*' matches nothing",
    ),
    Case(
        ".dockerignore: what is ignored, brought back, at any depth",
        "FROM scratch\nCOPY . /all/\n",
        {
            ".dockerignore": "# comment\n*.log\n!keep.log\n**/*.tmp\n/build\nnode_modules\n!node_modules/own\n"
            "  docs/*.md  \n!docs/README*.md\ndocs/README-secret.md\n.git\n*/deep*\n",
            "a.log": "",
            "keep.log": "kept",
            "x/y/z.tmp": "",
            "x/y/z.txt": "t",
            "build/out": "",
            "sub/build/out": "o",
            "node_modules/other": "",
            "node_modules/own": "own",
            "docs/a.md": "",
            "docs/README.md": "r",
            "docs/README-secret.md": "",
            ".git/HEAD": "",
            "x/deeper": "",
            "x/y/deep": "d",
            "sub/a.log": "l",
        },
        files={
            "all/a.log": None,
            "all/keep.log": "kept",
            "all/x/y/z.tmp": None,
            "all/x/y/z.txt": "t",
            "all/build/out": None,
            "all/sub/build/out": "o",
            "all/node_modules/other": None,
            "all/node_modules/own": "own",
            "all/docs/a.md": None,
            "all/docs/README.md": "r",
            "all/docs/README-secret.md": None,
            "all/.git/HEAD": None,
            "all/x/deeper": None,
            "all/x/y/deep": "d",
            "all/sub/a.log": "l",
        },
    ),
    Case(
        "everything is ignored but what is wanted",
        "FROM scratch\nCOPY . /\n",
        {
            ".dockerignore": "*\n!src/**\n!go.*\nsrc/**/*_test.go\n",
            "src/a/b.go": "b",
            "src/a/b_test.go": "",
            "go.mod": "m",
            "secret": "",
        },
        files={"src/a/b.go": "b", "src/a/b_test.go": None, "go.mod": "m", "secret": None, "Dockerfile": None},
    ),
    Case(
        "commands and entrypoints in both forms, and what takes which away",
        """
FROM busybox AS a
ENTRYPOINT ["/entry"]
CMD ["arg"]
FROM a
CMD exec top -b
HEALTHCHECK --interval=5m --timeout=3s --start-period=10s --retries=2 \\
\tCMD\twget -q http://localhost/ || exit 1
STOPSIGNAL SIGRTMIN+3
VOLUME ["/data"]
VOLUME /logs /cache
EXPOSE 80/tcp 53/UDP
""",
        config={
            "Entrypoint": ["/entry"],
            "Cmd": ["/bin/sh", "-c", "exec top -b"],
            "Healthcheck": {
                "Test": ["CMD-SHELL", "wget -q http://localhost/ || exit 1"],
                "Interval": 300 * 10**9,
                "Timeout": 3 * 10**9,
                "StartPeriod": 10 * 10**9,
                "Retries": 2,
            },
            "StopSignal": "SIGRTMIN+3",
            "Volumes": {"/data": {}, "/logs": {}, "/cache": {}},
            "ExposedPorts": {"53/udp": {}, "80/tcp": {}},
        },
    ),
    Case(
        "shells: pipes that fail, lists that are not expanded, another shell",
        r"""
FROM busybox
RUN false | true
SHELL ["/bin/ash", "-eo", "pipefail", "-c"]
RUN echo 'a"b' | tr a-z A-Z > /pipe
RUN ["/bin/sh", "-c", "echo \"$0 $HOME\" > /list"]
RUN export X=1 && echo $X${Y:-unset} > /x
RUN echo "tab	and  blanks" \
  && echo 'back\\slash' > /back
SHELL ["/bin/sh", "-c"]
CMD echo done
""",
        config={"Cmd": ["/bin/sh", "-c", "echo done"], "Shell": ["/bin/sh", "-c"]},
        files={"pipe": 'A"B\n', "list": "/bin/sh /root\n", "x": "1unset\n", "back": "back\\\\slash\n"},
    ),
    Case(
        "folders: relative, with variables, quoted, and back to the root",
        """
FROM busybox
ENV DIR=/opt
WORKDIR $DIR
WORKDIR a
WORKDIR ../b/./c
RUN pwd > where
WORKDIR "/with blank"
RUN pwd > where
WORKDIR /
COPY f ./
""",
        {"f": "f"},
        config={"WorkingDir": "/"},
        files={"opt/b/c/where": "/opt/b/c\n", "with blank/where": "/with blank\n", "f": "f"},
    ),
    Case(
        "what is removed and replaced in later layers",
        """
FROM busybox
RUN mkdir -p /d/e && echo 1 > /d/e/f && echo 2 > /d/g && ln -s g /d/link
RUN rm -rf /d/e && mkdir /d/e && echo 3 > /d/e/new
COPY g /d/link
RUN rm /d/g
""",
        {"g": "copied"},
        files={"d/e/new": "3\n", "d/e/f": None, "d/g": None},
    ),
    Case(
        "mounts of commands leave nothing behind",
        """
FROM busybox AS tools
RUN echo tool > /tool
FROM busybox
RUN --mount=type=bind,from=tools,source=/tool,target=/t --mount=type=bind,target=/ctx \\
    --mount=type=cache,target=/cache --mount=type=tmpfs,target=/scratch \\
    cat /t /ctx/file > /out && touch /cache/x /scratch/y
""",
        {"file": "context\n"},
        files={"out": "tool\ncontext\n", "t": None, "cache/x": None, "scratch/y": None},
    ),
    Case(
        "instructions in lower case, with odd blanks and line ends",
        'from busybox as Base\r\nRun echo a \\   \r\n   > /a\r\n\r\n   copy   f   /f\r\ncmd   ["x"]\r\n',
        {"f": "f"},
        config={"Cmd": ["x"]},
        files={"a": "a\n", "f": "f"},
    ),
    Case(
        "one stage is wanted, and those it needs are built",
        "FROM busybox AS a\nRUN echo a > /a\nFROM a AS b\nRUN echo b > /b\nFROM b AS broken\nRUN exit 1\n",
        flags=("--target", "b"),
        files={"a": "a\n", "b": "b\n"},
    ),
    Case(
        "environment that a command needs at build time only",
        "FROM busybox\nRUN --network=none DEBIAN_FRONTEND=noninteractive sh -c 'echo $DEBIAN_FRONTEND' > /x\n",
        files={"x": "noninteractive\n"},
    ),
    Case(
        "variables where the reference allows them",
        """
FROM busybox
ARG port=8080 dir=/srv who=33 sig=SIGINT
ARG text="a b"
ENV E="$text" F=${text}
EXPOSE ${port} $port/udp
WORKDIR ${dir}/app
USER $who:$who
VOLUME $dir/data
STOPSIGNAL $sig
LABEL at=$dir:$port "key-$port"="${text}"
CMD ["$port"]
""",
        config={
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "E=a b", "F=a b"],
            "ExposedPorts": {"8080/tcp": {}, "8080/udp": {}},
            "WorkingDir": "/srv/app",
            "User": "33:33",
            "Volumes": {"/srv/data": {}},
            "StopSignal": "SIGINT",
            "Labels": {"at": "/srv:8080", "key-8080": "a b"},
            "Cmd": ["$port"],
        },
    ),
    Case(
        "copies from other images, links, and what is left out",
        """
FROM scratch AS empty
FROM busybox
COPY --from=busybox:latest /bin/busybox /copied
COPY --link --chown=3:4 dir /linked/
COPY --exclude=*.md --exclude=sub dir /some/
ADD --chmod=600 dir/a.md /mode
""",
        {"dir/a.md": "md", "dir/b.txt": "txt", "dir/sub/c.txt": "c"},
        files={"some/b.txt": "txt", "some/a.md": None, "some/sub/c.txt": None, "linked/sub/c.txt": "c", "mode": "md"},
        modes={"linked/a.md": (3, 4, 0o644), "mode": (0, 0, 0o600), "copied": (0, 0, 0o755)},
    ),
    Case(
        "continued lines: comments, blanks and the end of the file",
        "FROM busybox\nRUN echo 1 > /a && \\\n# one\n   # two\n\n\techo 2 \\\n > /b\n"
        "ENV A=1 \\\n    B=2\nRUN echo 3 > /c \\\n",
        config={"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=1", "B=2"]},
        files={"a": "1\n", "b": "2\n", "c": "3\n"},
        said="an empty line inside a continued one",
    ),
    Case(
        "text that is not ASCII",
        'FROM busybox\nENV GREETING="grüß dich" EMOJI=✓\nLABEL ä=ö\n'
        'RUN echo "$GREETING $EMOJI ß" > /ünïcode\nCOPY ü.txt /\n',
        {"ü.txt": "ü"},
        config={"Labels": {"ä": "ö"}},
        files={"ünïcode": "grüß dich ✓ ß\n", "ü.txt": "ü"},
    ),
    Case(
        "patterns of variables, for versions and paths",
        """
FROM busybox
ARG VERSION=v1.2.3-rc1
ARG FILE=/a/b/c.tar.gz
ENV MAJOR=${VERSION%%.*} PLAIN=${VERSION#v} STABLE=${VERSION%-*} BASE=${FILE##*/} EXT=${FILE#*.} DASH=${VERSION//./-}
""",
        config={
            "Env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "MAJOR=v1",
                "PLAIN=1.2.3-rc1",
                "STABLE=v1.2.3",
                "BASE=c.tar.gz",
                "EXT=tar.gz",
                "DASH=v1-2-3-rc1",
            ]
        },
    ),
    Case(
        "a server in the manner of nginx: scripts in a folder, links of logs, a signal",
        """
FROM busybox
RUN mkdir -p /var/log/web /docker-entrypoint.d \\
 && ln -sf /dev/stdout /var/log/web/access.log
COPY docker-entrypoint.sh /
COPY 10-*.sh 20-*.sh /docker-entrypoint.d/
RUN chmod +x /docker-entrypoint.sh /docker-entrypoint.d/*.sh
ENTRYPOINT ["/docker-entrypoint.sh"]
EXPOSE 80
STOPSIGNAL SIGQUIT
CMD ["web", "-g", "daemon off;"]
""",
        {"docker-entrypoint.sh": "#!/bin/sh\n", "10-a.sh": "a", "20-b.sh": "b", "30-c.sh": "c"},
        config={"Cmd": ["web", "-g", "daemon off;"], "StopSignal": "SIGQUIT"},
        files={"docker-entrypoint.d/10-a.sh": "a", "docker-entrypoint.d/30-c.sh": None},
        modes={"docker-entrypoint.sh": (0, 0, 0o755), "docker-entrypoint.d/20-b.sh": (0, 0, 0o755)},
    ),
    Case(
        "an application in the manner of node and python: dependencies first, a user, a check",
        """
FROM busybox AS deps
WORKDIR /app
COPY package.json package-lock.jso[n] ./
RUN cat package.json > node_modules

FROM busybox AS runner
ENV NODE_ENV production
WORKDIR /app
RUN echo 'node:x:1001:1001::/app:/bin/sh' >> /etc/passwd && echo 'node:x:1001:' >> /etc/group
COPY --from=deps --chown=node:node /app/node_modules ./node_modules
COPY --chown=node:node . .
USER node
HEALTHCHECK CMD ["node", "check.js"]
CMD [ "node", "server.js" ]
""",
        {
            "package.json": "{}",
            "server.js": "s",
            ".dockerignore": "node_modules\n.git*\n**/.DS_Store\n",
            ".gitignore": "",
        },
        config={
            "User": "node",
            "WorkingDir": "/app",
            "Cmd": ["node", "server.js"],
            "Healthcheck": {"Test": ["CMD", "node", "check.js"]},
        },
        files={"app/node_modules": "{}", "app/server.js": "s", "app/.gitignore": None},
        modes={"app/server.js": (1001, 1001, 0o644), "app/node_modules": (1001, 1001, 0o644)},
    ),
]
