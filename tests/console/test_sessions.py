"""Keys are for one use, tokens end when they are not used; neither grows without bound."""

from __future__ import annotations

from pybernetes.console.sessions import KEY_LIFETIME, MAX_KEYS, MAX_SESSIONS, SESSION_LIFETIME, Sessions


def test_a_key_is_exchanged_once() -> None:
    sessions = Sessions()
    key = sessions.new_key(0)
    token = sessions.exchange(key, 1)
    assert token
    assert sessions.valid(token, 2)
    assert sessions.exchange(key, 2) is None


def test_a_key_ends_by_itself() -> None:
    sessions = Sessions()
    assert sessions.exchange(sessions.new_key(0), KEY_LIFETIME) is None


def test_a_key_is_no_token_and_a_token_is_no_key() -> None:
    sessions = Sessions()
    key = sessions.new_key(0)
    assert not sessions.valid(key, 1)
    token = sessions.exchange(key, 1)
    assert token
    assert sessions.exchange(token, 1) is None


def test_a_session_ends_when_it_is_not_used_and_goes_on_while_it_is() -> None:
    sessions = Sessions()
    used, unused = (sessions.exchange(sessions.new_key(0), 0) or "" for _ in range(2))
    assert sessions.valid(used, SESSION_LIFETIME - 1)
    assert sessions.valid(used, SESSION_LIFETIME + 1)
    assert not sessions.valid(unused, SESSION_LIFETIME + 1)


def test_keys_and_sessions_are_bounded_and_the_oldest_go_first() -> None:
    sessions = Sessions()
    keys = [sessions.new_key(0) for _ in range(MAX_KEYS + 1)]
    assert sessions.exchange(keys[0], 1) is None
    tokens = [sessions.exchange(sessions.new_key(0), 0) or "" for _ in range(MAX_SESSIONS)]
    assert sessions.valid(tokens[0], 1)
    another = sessions.exchange(sessions.new_key(1), 1) or ""
    assert sessions.valid(another, 1)
    assert sessions.valid(tokens[0], 1)
    assert not sessions.valid(tokens[1], 1)
