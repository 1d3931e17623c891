"""HTTP/1.1 over a bare socket: one connection, one request at a time, kept open between requests.

Uses `_socket` and `_ssl`, the C halves of `socket` and `ssl`, because importing the Python halves costs more than the
request. Certificates that are data and not files are handed to OpenSSL through an anonymous file.
"""

from __future__ import annotations

import _socket
import os
import time

from pybernetes.kubectl.errors import CLIError, ConnectionFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pybernetes.kubectl.restconfig import RestConfig
    from pybernetes.kubectl.verbose import Log

_CHUNK = 1 << 18


class _Socket(_socket.socket):
    """`_ssl` keeps a weak reference to the socket below it."""

    __slots__ = ("__weakref__",)


class Response:
    """The head of a response and its body, read on demand."""

    def __init__(self, status: int, reason: str, headers: list[tuple[str, str]], stream: _Stream) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.stream = stream
        self.url = ""

    def header(self, name: str) -> str:
        """The value of a header, by its lower-case name."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return ""

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The body in pieces, as they arrive."""
        pieces = self.stream.body(self)
        if self.header("content-encoding") == "gzip":
            import zlib

            expander = zlib.decompressobj(31)
            for piece in pieces:
                yield expander.decompress(piece)
            return
        yield from pieces

    def lines(self) -> Iterator[bytes]:
        """The body in lines, without their ends."""
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n") if rest else piece.split(b"\n")
            yield from whole
        if rest:
            yield rest


class _Stream:
    """Buffered reading of a connection, and the framing of HTTP bodies."""

    def __init__(self, sock: _Socket, tls: Any) -> None:
        self.sock = sock
        self.tls = tls
        self.buffer = b""
        self.reusable = True
        self.deadline: float | None = None
        """When the running request must be over, its body included."""

    def usable(self) -> bool:
        """Whether another request may be sent: the last one is read to its end, and the server has not hung up."""
        if not self.reusable or self.buffer:
            return False
        self.sock.settimeout(0)
        try:
            self.sock.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def send(self, payload: bytes) -> None:
        if self.tls is None:
            self.sock.sendall(payload)
            return
        view = memoryview(payload)
        while view:
            view = view[self.tls.write(view) :]

    def receive(self) -> bytes:
        """Some bytes, or none at the end."""
        if self.buffer:
            piece, self.buffer = self.buffer, b""
            return piece
        if self.deadline is not None:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self.sock.settimeout(left)
        if self.tls is None:
            return self.sock.recv(_CHUNK)
        try:
            piece = self.tls.read(_CHUNK)
        except OSError as error:
            # A peer that closes without a TLS goodbye: the framing of HTTP says whether something is missing.
            if type(error).__name__ in ("SSLEOFError", "SSLZeroReturnError"):
                return b""
            raise
        assert isinstance(piece, bytes)
        return piece

    def until(self, mark: bytes) -> bytes:
        """The bytes before a mark, which is dropped."""
        found = b""
        while True:
            piece = self.receive()
            if not piece:
                raise EOFError
            found += piece
            at = found.find(mark)
            if at >= 0:
                self.buffer = found[at + len(mark) :]
                return found[:at]

    def body(self, response: Response) -> Iterator[bytes]:
        if response.status in (204, 304) or 100 <= response.status < 200:
            return
        if response.header("transfer-encoding").lower() == "chunked":
            yield from self._chunks()
            return
        length = response.header("content-length")
        if not length:
            self.reusable = False
            while piece := self.receive():
                yield piece
            return
        left = int(length)
        while left:
            piece = self.receive()
            if not piece:
                raise EOFError
            if len(piece) > left:
                piece, self.buffer = piece[:left], piece[left:]
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = int(self.until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while self.until(b"\r\n"):
                    pass
                return
            left = size
            while left:
                piece = self.receive()
                if not piece:
                    raise EOFError
                if len(piece) > left:
                    piece, self.buffer = piece[:left], piece[left:]
                left -= len(piece)
                yield piece
            self.until(b"\r\n")


class Timing:
    """Seconds that the parts of the last request took, and whether its connection was there already."""

    __slots__ = ("connection", "dial", "lookup", "reused", "server", "tls")

    def __init__(self) -> None:
        self.reused = False
        self.connection = self.dial = self.lookup = self.tls = self.server = 0.0


class Transport:
    """Requests to one server. Not safe for threads: a thread has a Transport of its own (`clone`)."""

    def __init__(self, config: RestConfig, log: Log | None = None) -> None:
        self.config = config
        self._log = log
        self.timing = Timing()
        scheme, _, rest = config.server.partition("://")
        self.tls = scheme == "https"
        self.authority, slash, prefix = rest.partition("/")
        self.prefix = slash + prefix
        self.authority = self.authority.rpartition("@")[2]
        self.host, self.port = split_host(self.authority, 443 if self.tls else 80)
        self.keepalive = 0.0
        """Seconds between TCP keepalives of new connections; 0 leaves them off."""
        self._stream: _Stream | None = None
        self._context: Any = None

    def clone(self) -> Transport:
        """Another connection to the same server."""
        other = Transport(self.config, self._log)
        other._context = self._context
        return other

    def request(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes | None = None, timeout: float = 0
    ) -> Response:
        """Sends a request and returns when the head of its response is there. Raises ConnectionFailed."""
        url = f"{self.config.server}{path}"
        lines = [f"{method} {self.prefix}{path} HTTP/1.1", f"Host: {self.authority}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        trace = os.environ.get("TRACEPARENT", "")  # `pyb trace` runs us: the span that our requests belong to
        if trace and trace.isascii() and trace.isprintable():
            lines.append(f"traceparent: {trace}")
        payload = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + (body or b"")
        reused = self._stream is not None and self._stream.usable()
        while True:
            timing = self.timing = Timing()
            timing.reused = reused
            began = time.monotonic()
            written = False
            try:
                stream = self._stream if reused and self._stream is not None else self._open(timeout)
                timing.connection = time.monotonic() - began
                stream.sock.settimeout(timeout or None)
                stream.deadline = time.monotonic() + timeout if timeout else None
                stream.send(payload)
                written = True
                began = time.monotonic()
                response = self._head(stream)
                timing.server = time.monotonic() - began
                return response
            except (OSError, EOFError) as error:
                self.close()
                if reused and not isinstance(error, TimeoutError) and (method == "GET" or not written):
                    reused = False  # the server closed the idle connection: once more on a new one
                    continue
                raise self.failure(error, method, url) from None
            except ValueError:
                self.close()
                raise ConnectionFailed("malformed HTTP response", url) from None

    def upgrade(self, method: str, path: str, headers: list[tuple[str, str]]) -> tuple[Response, _Stream]:
        """A request that leaves HTTP: the response and the stream below it, which the caller owns from now on."""
        self.close()
        response = self.request(method, path, headers)
        stream = self._stream
        assert stream is not None
        self._stream = None
        return response, stream

    def close(self) -> None:
        """Closes the connection."""
        if self._stream is not None:
            self._stream.sock.close()
            self._stream = None

    def _head(self, stream: _Stream) -> Response:
        while True:
            head = stream.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            version, _, rest = head[0].partition(" ")
            code, _, reason = rest.partition(" ")
            headers = []
            for line in head[1:]:
                name, _, value = line.partition(":")
                headers.append((name, value.strip()))
            if not version.startswith("HTTP/1."):
                raise ValueError(head[0])
            response = Response(int(code), reason, headers, stream)
            if response.header("connection").lower() == "close" or version == "HTTP/1.0":
                stream.reusable = False
            if response.status == 101 or response.status >= 200:
                return response

    # -- connecting

    def _open(self, timeout: float) -> _Stream:
        self.close()
        proxy = self._proxy()
        if proxy:
            from pybernetes.kubectl.proxies import connect_through

            sock = connect_through(proxy, self.host, self.port, self._connect, timeout)
        else:
            sock = self._connect(self.host, self.port, timeout)
        tls = None
        if self.tls:
            if self._context is None:
                self._context = tls_context(self.config)
            name = self.config.tls_server_name or self.host.strip("[]")
            tls = self._context._wrap_socket(sock, False, name)
            began = time.monotonic()
            tls.do_handshake()
            self.timing.tls = time.monotonic() - began
        self._stream = _Stream(sock, tls)
        return self._stream

    def _proxy(self) -> str:
        if self.config.proxy_url:
            return self.config.proxy_url
        environment = os.environ
        names = ("HTTPS_PROXY", "https_proxy") if self.tls else ("HTTP_PROXY", "http_proxy")
        found = next((environment[name] for name in names if environment.get(name)), "")
        if not found or self.host in ("localhost", "::1") or self.host.startswith("127."):
            return ""
        from pybernetes.kubectl.proxies import excluded

        return "" if excluded(self.host, self.port) else found

    def _connect(self, host: str, port: int, timeout: float) -> _Socket:
        last: OSError | None = None
        name = host.strip("[]")
        # Bytes are taken as they are; text would import the IDNA codec, which costs more than the request.
        encoded: str | bytes = name.encode() if name.isascii() else name
        began = time.monotonic()
        found = _socket.getaddrinfo(encoded, port, 0, _socket.SOCK_STREAM)
        if self._log is not None:
            self._log.resolved(name, [str(entry[4][0]) for entry in found])
        self.timing.lookup = 0.0 if name == found[0][4][0] else time.monotonic() - began
        for family, kind, protocol, _, address in found:
            sock = _Socket(family, kind, protocol)
            began = time.monotonic()
            try:
                sock.settimeout(timeout or 30)
                sock.connect(address)
                self.timing.dial = time.monotonic() - began
                if self._log is not None:
                    self._log.dialed(str(address[0]), port)
                sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
                if self.keepalive > 0:
                    seconds = max(1, int(self.keepalive))
                    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
                    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_KEEPIDLE, seconds)
                    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_KEEPINTVL, seconds)
                return sock
            except OSError as error:
                sock.close()
                last = error
                if self._log is not None:
                    self._log.dialed(str(address[0]), port, error)
        raise last or OSError("no address")

    def _certificate(self) -> bytes | None:
        """The certificate (DER) of a server that was not trusted, to tell the user what is wrong with it."""
        import _ssl

        try:
            if self._proxy():
                return None
            sock = self._connect(self.host, self.port, 5)
            context = _ssl._SSLContext(_ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = _ssl.CERT_NONE
            tls = context._wrap_socket(sock, False, self.config.tls_server_name or self.host.strip("[]"))  # type: ignore[attr-defined]
            tls.do_handshake()
            found: bytes | None = tls.getpeercert(True)
            sock.close()
        except OSError:
            return None
        return found

    def failure(self, error: BaseException, method: str, url: str) -> ConnectionFailed:
        """The words of a failed connection."""
        where = f"dial tcp {self.host}:{self.port}"
        if isinstance(error, ConnectionRefusedError):
            return ConnectionFailed(f"{where}: connect: connection refused", url, refused_host=self.authority)
        if isinstance(error, TimeoutError):
            return ConnectionFailed(
                "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
                if self.config.timeout
                else f"{where}: i/o timeout",
                url,
                timed_out=True,
            )
        if isinstance(error, EOFError):
            return ConnectionFailed("EOF", url)
        if isinstance(error, _socket.gaierror):
            return ConnectionFailed(f"dial tcp: lookup {self.host}{_resolver()}: no such host", url)
        name = type(error).__name__
        if name == "SSLCertVerificationError":
            from pybernetes.kubectl.peer_certificate import complaint

            shown = self._certificate() if getattr(error, "verify_code", 0) in (9, 10, 62, 64) else None
            name = self.config.tls_server_name or self.host.strip("[]")
            return ConnectionFailed(f"tls: failed to verify certificate: x509: {complaint(error, name, shown)}", url)
        if name.startswith("SSL"):
            return ConnectionFailed(_tls(error), url)
        text = getattr(error, "strerror", None) or str(error)
        if isinstance(error, ConnectionResetError):
            return ConnectionFailed(f"read tcp {self.host}:{self.port}: read: connection reset by peer", url)
        return ConnectionFailed(f"{where}: connect: {text.lower()}", url)


def _resolver() -> str:
    """Which name server did not know a name, as Go's resolver says it."""
    try:
        with open("/etc/resolv.conf") as file:
            for line in file:
                words = line.split()
                if words[:1] == ["nameserver"] and len(words) > 1:
                    return f" on {words[1]}:53"
    except OSError:
        pass
    return ""


def _tls(error: BaseException) -> str:
    reason = str(getattr(error, "reason", "") or "")
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "tls: first record does not look like a TLS handshake"
    if "ALERT" in reason:
        words = reason.split("ALERT_", 1)[-1].replace("_", " ").lower().removeprefix("certificate ")
        return f"remote error: tls: {'expired certificate' if 'expired' in words else words}"
    return f"tls: {reason.replace('_', ' ').lower() or error}"


def split_host(authority: str, default: int) -> tuple[str, int]:
    """The host and the port of an authority."""
    if authority.endswith("]") or ":" not in authority:
        return authority, default
    host, _, port = authority.rpartition(":")
    try:
        return host, int(port)
    except ValueError:
        raise CLIError(f'parse "{authority}": invalid port ":{port}" after host') from None


def tls_context(config: RestConfig) -> Any:
    """OpenSSL's context: whom to trust and what to show. Raises CLIError for certificates that cannot be used."""
    import _ssl

    context = _ssl._SSLContext(_ssl.PROTOCOL_TLS_CLIENT)
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = _ssl.CERT_NONE
    elif config.ca_data or config.ca_file:
        try:
            if config.ca_data:
                context.load_verify_locations(None, None, config.ca_data.decode("latin-1"))
            else:
                _readable(config.ca_file, "certificate-authority", config.user_name)
                context.load_verify_locations(config.ca_file)
        except OSError:
            raise CLIError("unable to load root certificates: unable to parse bytes as PEM block") from None
    else:
        context.set_default_verify_paths()
    if config.cert_data or config.cert_file:
        _show_certificate(context, config)
    return context


def load_pair(certificate: bytes, key: bytes) -> None:
    """Checks that a certificate and a key are usable and belong together. Raises CLIError."""
    import _ssl

    from pybernetes.kubectl.restconfig import RestConfig

    config = RestConfig()
    config.cert_data, config.key_data = certificate, key
    _show_certificate(_ssl._SSLContext(_ssl.PROTOCOL_TLS_CLIENT), config)


def _show_certificate(context: Any, config: RestConfig) -> None:
    if not config.cert_data:
        _readable(config.cert_file, "client-cert", config.user_name)
    if not config.key_data:
        _readable(config.key_file, "client-key", config.user_name)
    opened: list[int] = []
    try:
        certificate = config.cert_file if not config.cert_data else _as_file(config.cert_data, opened)
        key = config.key_file if not config.key_data else _as_file(config.key_data, opened)
        context.load_cert_chain(certificate, key)
    except OSError as error:
        reason = str(getattr(error, "reason", ""))
        if "MISMATCH" in reason:
            raise CLIError("tls: private key does not match public key") from None
        raise CLIError("tls: failed to find any PEM data in certificate input") from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _as_file(content: bytes, opened: list[int]) -> str:
    """A path to bytes that are on no disk."""
    descriptor = os.memfd_create("kubectl")
    opened.append(descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return f"/proc/self/fd/{descriptor}"


def _readable(path: str, what: str, user: str) -> None:
    from pybernetes.kubectl.errors import PlainError

    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PlainError(
            f"Error in configuration: unable to read {what} {path} for {user} due to open {path}: {reason}"
        ) from None
