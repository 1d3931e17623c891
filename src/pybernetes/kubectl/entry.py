"""The entry point of `./kubectl`, as `python -I -S entry.py ARGS`: the quickest start of Python.

`-S` leaves out site-packages, which `get` does not need; the first import that is not found without them brings them.
"""

import sys


class _SitePackages:
    """The last finder: makes site-packages importable when a module was not found without them."""

    done = False

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if cls.done or path is not None:
            return None
        cls.done = True
        before = list(sys.path)
        import site

        site.main()
        sys.path[: len(before)] = before
        for finder in sys.meta_path:
            if finder is not cls:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


def run() -> None:
    """Runs kubectl and ends the process with its exit code."""
    sys.path[:0] = [__file__.rsplit("/pybernetes/", 1)[0]]
    sys.meta_path.append(_SitePackages)
    try:
        from pybernetes.kubectl.main import process
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    process(sys.argv)


if __name__ == "__main__":
    run()
