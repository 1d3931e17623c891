"""Why a pod is pending, why it is where it is, and what would make it fit.

`memory` keeps what every attempt found; `verdicts` asks the plugins now; `changes` tries what would help, for real;
`report` puts it into one document, which the scheduler serves at `/debug/why` and `pyb why` prints.
"""
