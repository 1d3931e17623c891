"""Whatever a Dockerfile says, a build ends with an image or with one line."""

from __future__ import annotations

from pathlib import Path

from cluster.images.dockerfile.bench import Bench
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile.building import Builder, Request
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.parsing import FLAGS
from pybernetes.cluster.layout import Layout

WORDS = [
    "a", "/x", "d", "d/", ".", "..", "*", "[", "link", "${A:-b}", "$A", "${", '"', "'", "\\", "=", "A=b", "A=", '["a"]',
    "[]", "0", "1000:1000", "80/tcp", "--from=one", "--from=scratch", "--chown=5", "--chmod=7", "--exclude=*", "--link",
    "<<E", "AS", "CMD", "NONE", "COPY a /y", "é", "\t", "/a\x01b", "a" * 300,
]  # fmt: skip
LINE = st.builds(
    lambda keyword, words: f"{keyword} {' '.join(words)}",
    st.sampled_from([*sorted(set(FLAGS) - {"RUN", "FROM"}), "FROM scratch AS one\nCOPY", "FROM one\nWORKDIR", "E"]),
    st.lists(st.sampled_from(WORDS), max_size=4),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, max_size=6))
@example(["COPY a " + "/d" * 300])
@example(["WORKDIR " + "d/" * 3000])
@example(["COPY a d link /x/", "COPY d /x/a"])
@example(["ENV A=" + "${A:-" * 500])
def test_any_dockerfile_is_built_or_refused_in_a_line(bench: Bench, lines: list[str]) -> None:
    for path in ("a", "d/b"):
        bench.put(path, path)
    if not (bench.context / "link").is_symlink():
        (bench.context / "link").symlink_to("d")
    text = "\n".join(["FROM scratch AS first", *lines])
    layout = Layout("x", bench.data)
    try:
        with Kept(bench.data / "build") as kept:
            request = Request(bench.context, "Dockerfile", text.encode())
            built = Builder(layout, kept, request, lambda line: None, lambda data: None).build()
            with open(bench.context.parent / "out.tar", "wb") as out:
                oci.write_layout(out, ["docker.io/library/x:1"], built.document, built.layers)
    except ClusterError as error:
        assert "\n" not in str(error), error  # noqa: PT017
    assert not list(Path(bench.data / "build" / "work").iterdir())
