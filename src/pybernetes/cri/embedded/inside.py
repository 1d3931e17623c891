"""Turns a forked process into a sandbox, a container or a command in one: it never returns.

Volumes are opened (`open_tree`) while the node's files are still to be seen, and put in their places when the root is
already the container's: a link in an image or a volume then leads nowhere but into the container itself. For the same
reason users are looked up after that. Everything that is needed has been imported by then: an import inside would run
the image's code, and is made impossible.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import sys as python
import termios
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from . import syscalls as sys
from . import users

Spec = Mapping[str, Any]
Report = Callable[[dict[str, Any], list[int]], None]
"""Tells the launcher something, with descriptors."""
Node = int | tuple[int, int, int]
"""A device: the node's own as a descriptor to mount, or the mode, number and group of one to make."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NODES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
TTY = 5
"""The group of terminals."""
LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
PROC_FILES = frozenset(
    f"/proc/{name}"
    for name in (
        *("cpuinfo", "diskstats", "loadavg", "meminfo", "net/dev", "slabinfo", "stat", "swaps", "uptime"),
        *("sys/crypto/fips_enabled", "sys/kernel/ns_last_pid"),
    )
)
"""Files of /proc that a volume may cover."""
UNPRIVILEGED = 65535  # the user of upstream's pause image
USUAL = sys.MS_NOSUID | sys.MS_NODEV | sys.MS_NOEXEC
USUAL_SIGNALS = (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
"""Which the launcher or its Python ignores or hears: a program would inherit that."""
SANDBOX_OOM_SCORE = -998  # upstream's: a pod ends with its sandbox
USERS = sys.users()
"""Asked for before there is a container whose /proc could answer."""
ROOTLESS = USERS < sys.ALL_USERS
"""In a user namespace: the kernel lets us make no device nodes, and overlayfs keep its notes only as a user's."""
ALONE = USERS == 1
"""There is no user but root: files cannot change their owner, nor a process its user."""


LINE, TARGET, PIDS = 3, 4, 5
"""In a new process: the line to the launcher, the process whose namespaces it joins, the PID namespace it joins."""


class Refused(Exception):
    """An error for the user."""


def sandbox(spec: Spec, report: Report) -> NoReturn:
    """Becomes the process that holds a pod's namespaces: alone in an empty root, unprivileged, without capabilities."""
    _enter_cgroups(spec)
    _oom_score(SANDBOX_OOM_SCORE)
    sys.unshare(sys.NEWNS | int(spec["unshare"]))
    if spec.get("hostname"):
        sys.sethostname(spec["hostname"])
    for path, value in spec.get("sysctls", {}).items():
        _write(f"/proc/sys/{path}", value, f'sysctl "{path}"')
    if spec["unshare"] & sys.NEWNET:
        up_loopback()
    sys.mount("", "/", flags=sys.MS_REC | sys.MS_PRIVATE)
    root = spec["rootfs"]
    sys.mount(root, root, flags=sys.MS_BIND)
    sys.make_read_only(root, recursive=False, more=sys.MOUNT_ATTR_NOSUID | sys.MOUNT_ATTR_NODEV)
    sys.pivot_root(root)
    user = 0 if ALONE else UNPRIVILEGED
    _become(users.User(user, user, [], "/"), 0, 0, b"")
    _give_up_privileges(no_new_privs=True, seccomp=b"")
    report({}, [])  # without a reader it ends here
    os.execve("/pause", ["/pause"], {})


def container(spec: Spec, sandbox: int, report: Report) -> NoReturn:
    """Becomes the first process of a container; `sandbox` is a descriptor of the sandbox's process."""
    _enter_cgroups(spec)
    _oom_score(spec.get("oom_score_adj", 0))
    trees = [-1 if each["layers"] else sys.open_tree(each["source"]) for each in spec["mounts"]]
    nodes = [_node(each["host_path"]) for each in spec["devices"]]
    usual = [_usual_node(name) for name in NODES]
    cgroups = spec["cgroup_mounts"]
    if spec["join"]:
        sys.setns(sandbox, spec["join"])
    sys.unshare(sys.NEWNS | sys.NEWCGROUP)
    _close_up()
    # After the trees were opened, which keep their ties to the node; nothing mounted from here on is seen by it.
    sys.mount("", "/", flags=sys.MS_REC | sys.MS_PRIVATE)
    os.chdir(spec["layers_dir"])  # short names: all options of a mount must fit into one page
    trees = [
        _image(spec["rootfs"], each) if tree < 0 else tree for each, tree in zip(spec["mounts"], trees, strict=True)
    ]
    root, lower = spec["rootfs"], ":".join(spec["lower"])
    # In a user namespace the kernel lets these be mounted only where others of their kind are still to be seen.
    proc = _proc_of_joined(root) if _joins_pids(spec) else _fresh(root, "proc", USUAL)
    sysfs = _fresh(root, "sysfs", USUAL | (0 if spec["privileged"] else sys.MS_RDONLY))
    upper, work = sys.escaped(spec["upper"]), sys.escaped(spec["work"])
    options = f"lowerdir={lower},upperdir={upper},workdir={work}{spec.get('overlay', '')}"
    sys.mount("overlay", root, "overlay", 0, f"{options},userxattr" if ROOTLESS else options)
    sys.pivot_root(root)
    if proc < 0:
        # An older kernel mounts /proc of a PID namespace only from inside. The node's files are out of sight by now.
        _join_pids()
    _special_mounts(spec, cgroups, usual, proc, sysfs)
    # Before volumes are there, as long as /dev and /proc are certainly ours: a volume could have links in their place.
    _hide(spec)
    joins_later = _joins_pids(spec) and proc >= 0
    if spec["tty"]:
        _terminal(report, console=True, control=not joins_later)
    for each, tree in zip(spec["mounts"], trees, strict=True):
        _attach(each, tree)
    for each, node in zip(spec["devices"], nodes, strict=True):
        _make_node(each["path"], node)
    if spec["readonly_rootfs"]:
        sys.mount("", "/", flags=sys.MS_REMOUNT | sys.MS_BIND | sys.MS_RDONLY)
    _run(spec, report, joins_pids=joins_later)


def command(spec: Spec, target: int, report: Report) -> NoReturn:
    """Becomes a command in a running container; `target` is a descriptor of its first process."""
    _enter_cgroups(spec)
    _oom_score(spec.get("oom_score_adj", 0))
    _close_up()
    sys.setns(target, sys.NEWNS | sys.NEWNET | sys.NEWIPC | sys.NEWUTS | sys.NEWCGROUP)
    if spec["tty"]:
        _terminal(report, console=False, control=False)
    _run(spec, report, joins_pids=True)


def _joins_pids(spec: Spec) -> bool:
    return bool(spec.get("pid", ("own",))[0] == "join")


def _proc_of_joined(place: str) -> int:
    """/proc of the PID namespace that the container joins as a descriptor to mount; -1 if the kernel cannot do that."""
    try:
        sys.mount("proc", place, "proc", USUAL, f"pidns=/proc/self/fd/{PIDS}")
    except OSError as error:
        if error.errno == errno.EINVAL and not ROOTLESS:
            return -1
        if error.errno != errno.EINVAL:
            raise
        _join_pids()  # not root's: the node's files are those of the user who runs it
        return _fresh(place, "proc", USUAL)
    tree = sys.open_tree(place)
    sys.umount(place)
    return tree


def _join_pids() -> None:
    """Go on as a process in the PID namespace that is joined; this one ends."""
    sys.setns(PIDS, sys.NEWPID)
    _go_on_as_sibling()


def _go_on_as_sibling() -> None:
    """Go on in a new process, which the launcher hears of; this one ends.

    Only a new process is in the PID namespace that was joined, where the pod's other processes see it. So this is the
    last step but the program itself: nothing of the node's files and capabilities may be left by then, because a
    container with SYS_PTRACE reaches all that a process it sees has.
    """
    pid = sys.fork_sibling()
    if pid:
        os.write(LINE, b'{"became": %d}' % pid)
        os._exit(0)
    os.setsid()


def _close_up() -> None:
    """Closes the process to the container, before its files and processes are reachable: no imports, no ptrace.

    Without this, root in the container could open our program through /proc, or read what is left in memory
    of the requests for other containers, in the moment when our capabilities are its own already.
    """
    python.path.clear()
    python.meta_path.clear()
    sys.prctl(sys.PR_SET_DUMPABLE, 0)


def _run(spec: Spec, report: Report, *, joins_pids: bool) -> NoReturn:
    try:
        user = users.resolve(spec["user"])
    except users.UserError as error:
        raise Refused(str(error)) from None
    if ALONE:  # who is root shall have his capabilities, so that his group is root's
        user = user._replace(gid=user.gid if user.uid else 0, groups=[])
    environment = {os.fsencode(key): os.fsencode(value) for key, value in spec["env"]}
    environment.setdefault(b"PATH", PATH.encode())
    environment.setdefault(b"HOME", os.fsencode(user.home))
    if spec["tty"]:
        environment.setdefault(b"TERM", b"xterm")
    if not ALONE:
        for stream in (0,) if spec["tty"] else (1, 2):
            # so that /dev/stdout can be opened again
            os.fchown(stream, user.uid, -1 if spec["tty"] else user.gid)
    folder = spec["cwd"] or "/"
    if spec.get("make_cwd") and not os.path.isdir(folder):
        try:
            os.makedirs(folder, 0o755)
        except OSError as error:
            raise Refused(f'failed to create working directory "{folder}": {reason(error)}') from None
    capabilities = int(spec["capabilities"])
    os.umask(0o022)
    report({"user": [user.uid, user.gid, user.groups]}, [])
    seccomp, no_new_privs = bytes.fromhex(spec.get("seccomp", "")), bool(spec["no_new_privs"])
    if joins_pids:
        sys.setns(PIDS, sys.NEWPID)  # for the process that follows; needs the capabilities that go now
    _become(user, capabilities, spec["ambient"], b"" if no_new_privs else seccomp)
    try:
        os.chdir(folder)
    except OSError as error:
        raise Refused(f'chdir to cwd ("{folder}") set in config.json failed: {reason(error)}') from None
    program = [os.fsencode(each) for each in spec["args"]]
    found = _find(program[0], environment[b"PATH"])
    if joins_pids:
        _go_on_as_sibling()
        if spec["tty"]:
            control_terminal()
    _give_up_privileges(no_new_privs, seccomp)
    os.execve(found, program, environment)


def _find(name: bytes, path: bytes) -> bytes:
    shown = os.fsdecode(name)
    if b"/" in name:
        try:
            found = os.stat(name)
        except OSError as error:
            raise Refused(f'exec: "{shown}": stat {shown}: {reason(error)}') from None
        if stat.S_ISDIR(found.st_mode):
            raise Refused(f'exec: "{shown}": is a directory')
        if not os.access(name, os.X_OK, effective_ids=True):
            raise Refused(f'exec: "{shown}": permission denied')
        return name
    for folder in path.split(b":"):
        whole = os.path.join(folder or b".", name)
        if os.path.isfile(whole) and os.access(whole, os.X_OK, effective_ids=True):
            return whole
    raise Refused(f'exec: "{shown}": executable file not found in $PATH')


def _become(user: users.User, capabilities: int, ambient: int, seccomp: bytes) -> None:
    """Takes on a user and its capabilities; nothing that needs the old ones may come after.

    `seccomp` is the filter of a program that may gain privileges: to install it needs SYS_ADMIN.
    """
    if ALONE and user.uid:
        _call_us(user.uid, user.gid)
    for number in range(64):
        if not capabilities >> number & 1:
            try:
                sys.prctl(sys.PR_CAPBSET_DROP, number)
            except OSError:
                break  # there are no more
    if seccomp:
        sys.seccomp(seccomp)
    if not ALONE:
        _change_user(user)
    try:
        sys.capset(capabilities, ambient)
    except OSError as error:
        raise Refused(f"unable to apply caps: {reason(error)}") from None
    for number in range(64):
        if ambient >> number & 1:
            sys.prctl(sys.PR_CAP_AMBIENT, sys.PR_CAP_AMBIENT_RAISE, number)


def _give_up_privileges(no_new_privs: bool, seccomp: bytes) -> None:
    """The last steps before the program: it ends with the launcher, and gains no privileges if it may not."""
    sys.end_with_parent()
    if no_new_privs:
        sys.prctl(sys.PR_SET_NO_NEW_PRIVS, 1)
        if seccomp:
            sys.seccomp(seccomp)
    for number in USUAL_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _change_user(user: users.User) -> None:
    try:
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        sys.prctl(sys.PR_SET_KEEPCAPS, 1)
        os.setresuid(user.uid, user.uid, user.uid)
        sys.prctl(sys.PR_SET_KEEPCAPS, 0)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        who = f"user {user.uid}, groups {', '.join(map(str, [user.gid, *user.groups]))}"
        why = f"this node, which is not root's, has users and groups up to {USERS - 1} only"
        raise Refused(f"{who}: {why}") from None


def _call_us(user: int, group: int) -> None:
    """The only user there is gets another number, in a user namespace of this process's own: it is what programs see.

    A user who is not root has no capabilities over the pod's namespaces anyway, so that none are missed there.
    """
    sys.unshare(sys.NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} 0 1"), ("gid_map", f"{group} 0 1")):
        _write(f"/proc/self/{name}", text, name)


def _fresh(place: str, kind: str, flags: int) -> int:
    """A file system as a descriptor to mount; `place` is a mount point that is free for a moment."""
    sys.mount(kind, place, kind, flags)
    tree = sys.open_tree(place)
    sys.umount(place)
    return tree


def _special_mounts(spec: Spec, cgroups: list[list[str]], nodes: list[Node], proc: int, sysfs: int) -> None:
    """/proc, /sys, /dev and what belongs below them."""
    read_only = 0 if spec["privileged"] else sys.MS_RDONLY
    for path in ("/proc", "/sys", "/dev"):
        _folder(path)
    if proc < 0:
        sys.mount("proc", "/proc", "proc", USUAL)
    for path, tree in (("/proc", proc), ("/sys", sysfs)):
        if tree >= 0:
            sys.move_mount(tree, path)
            os.close(tree)
    if cgroups:
        if cgroups[0][1] == "cgroup2":
            sys.mount("cgroup", "/sys/fs/cgroup", "cgroup2", USUAL | read_only)
        else:
            sys.mount("cgroup", "/sys/fs/cgroup", "tmpfs", USUAL, "mode=755")
            for name, kind, options in cgroups:
                os.mkdir(f"/sys/fs/cgroup/{name}")
                sys.mount("cgroup", f"/sys/fs/cgroup/{name}", kind, USUAL | read_only, options)
            sys.mount("", "/sys/fs/cgroup", flags=sys.MS_REMOUNT | sys.MS_BIND | USUAL | sys.MS_RDONLY)
    sys.mount("tmpfs", "/dev", "tmpfs", sys.MS_NOSUID, "mode=755,size=65536k")
    for name, node in zip(NODES, nodes, strict=True):
        _make_node(f"/dev/{name}", node)
    for name, target in LINKS:
        os.symlink(target, f"/dev/{name}")
    for name in ("pts", "mqueue", "shm"):
        os.mkdir(f"/dev/{name}")
    options = "newinstance,ptmxmode=0666,mode=0620"
    owner = "" if USERS <= TTY else f",gid={TTY}"
    sys.mount("devpts", "/dev/pts", "devpts", sys.MS_NOSUID | sys.MS_NOEXEC, options + owner)
    sys.mount("mqueue", "/dev/mqueue", "mqueue", USUAL)


def _image(place: str, mount: Mapping[str, Any]) -> int:
    """A copy of an image's files, or of a part of them; `place` is a mount point that is free for a moment."""
    layers = mount["layers"]
    several = len(layers) > 1  # overlayfs without a writable layer wants two at least
    if several:
        sys.mount("overlay", place, "overlay", sys.MS_RDONLY, f"lowerdir={':'.join(layers)}")
    root = os.open(place if several else layers[0], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        part = sys.open_in_root(root, mount["sub_path"] or ".", os.O_PATH)
        tree = sys.open_tree(f"/proc/self/fd/{part}")
        os.close(part)
    except OSError as error:
        target = mount["target"]
        text = f'image volume at "{target}": sub path "{mount["sub_path"]}": {reason(error)}'
        raise Refused(text) from None
    finally:
        os.close(root)
    if several:
        sys.umount(place)
    return tree


def _attach(mount: Mapping[str, Any], tree: int) -> None:
    target = mount["target"]
    try:
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            _folder(target)
        else:
            _file(target)
        _spare_proc(target, tree)
        sys.move_mount(tree, target)
        sys.mount("", target, flags=sys.MS_REC | int(mount["propagation"]))
        if mount["readonly"]:
            sys.make_read_only(target, recursive=bool(mount["recursive"]))
    except OSError as error:
        source = mount["source"]
        raise Refused(f'error mounting "{source}" to rootfs at "{target}": {reason(error)}') from None
    os.close(tree)


def _spare_proc(target: str, tree: int) -> None:
    """Refuse to cover files of /proc, by which programs and runtimes steer the kernel, as runc does.

    Only what lxcfs and the like give containers of their own may be covered, and all of /proc by another /proc.
    """
    if os.stat(target).st_dev != os.stat("/proc").st_dev:
        return
    real = os.path.realpath(target)
    if real in PROC_FILES or (real == "/proc" and sys.file_system_type(tree) == sys.PROC_SUPER_MAGIC):
        return
    why = "is inside /proc" if real != "/proc" else "is not another /proc"
    raise Refused(f'"{target}" cannot be mounted because it {why}')


def _folder(path: str) -> None:
    os.makedirs(path, 0o755, exist_ok=True)


def _file(path: str) -> None:
    _folder(os.path.dirname(path))
    if not os.path.exists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644))


def _hide(spec: Spec) -> None:
    """Masked and read-only paths."""
    for path in spec["masked_paths"]:
        if os.path.isdir(path):
            sys.mount("tmpfs", path, "tmpfs", sys.MS_RDONLY, "size=0k")
        elif os.path.lexists(path):
            sys.mount("/dev/null", path, flags=sys.MS_BIND)
    for path in spec["readonly_paths"]:
        if os.path.exists(path):
            sys.mount(path, path, flags=sys.MS_BIND | sys.MS_REC)
            sys.make_read_only(path, recursive=True)


def _node(path: str) -> Node:
    """The data from which `_make_node` makes a device once the node's own is out of reach."""
    if ROOTLESS:
        return sys.open_tree(path)
    found = os.stat(path)
    return found.st_mode, found.st_rdev, found.st_gid


def _usual_node(name: str) -> Node:
    return _node(f"/dev/{name}") if ROOTLESS else (0o666 | stat.S_IFCHR, os.makedev(*NODES[name]), 0)


def _make_node(path: str, node: Node) -> None:
    _folder(os.path.dirname(path))
    if os.path.lexists(path):
        return
    if isinstance(node, int):
        _file(path)
        sys.move_mount(node, path)
        os.close(node)
        return
    mode, device, group = node
    os.mknod(path, mode, device)
    os.chmod(path, stat.S_IMODE(mode))
    os.chown(path, 0, group)


def _terminal(report: Report, *, console: bool, control: bool) -> None:
    """A terminal of the container's own as the three streams; the launcher gets the other end.

    A process that goes on as another one leaves the control of the terminal to it: control ends with a session.
    """
    master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, 0x40045431, b"\0\0\0\0")  # TIOCSPTLCK
    number = int.from_bytes(fcntl.ioctl(master, 0x80045430, b"\0\0\0\0"), "little")  # TIOCGPTN
    report({"terminal": True}, [master])
    os.close(master)
    slave = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
    if console:
        _file("/dev/console")
        sys.mount(f"/dev/pts/{number}", "/dev/console", flags=sys.MS_BIND)
    take_terminal(slave, control=control)


def take_terminal(slave: int, *, control: bool = True) -> None:
    """Makes a terminal the three streams of this process, and the one that controls its session."""
    for stream in range(3):
        os.dup2(slave, stream)
    if slave > 2:
        os.close(slave)
    if control:
        control_terminal()


def control_terminal() -> None:
    """Makes the terminal that is stdin the one that controls this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _enter_cgroups(spec: Spec) -> None:
    """Of v1 by `tasks`: to move a process the kernel waits for all processors (10 ms), but not for one's own thread."""
    for path in spec["cgroups"]:
        own = f"{path}/tasks"
        _write(own if os.path.exists(own) else f"{path}/cgroup.procs", "0", path)


def _oom_score(value: int) -> None:
    try:
        _write("/proc/self/oom_score_adj", str(value), "oom_score_adj")
    except Refused:
        # Lowering it needs SYS_RESOURCE. Upstream's runtimes have a setting for such machines; we see it ourselves.
        with open("/proc/self/oom_score_adj") as file:
            if value >= int(file.read()):
                raise


def up_loopback() -> None:
    """Switches the loopback device of this network namespace on."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: UP, RUNNING


def _write(path: str, value: str, subject: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, value.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise Refused(f"{subject}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """An error of the kernel, in the middle of a sentence."""
    return (error.strerror or str(error)).lower()


def error_text(error: BaseException) -> str:
    """The error of a process that could not become its program."""
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        return f"{(error.strerror or '').lower()}{where}" or repr(error)
    return str(error) or repr(error)
