"""The page in a real Chromium: lists that are live, search, keys, YAML with its preview, masked Secrets, accessibility."""

# ruff: noqa: E501 - lines of JavaScript
from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest
from console.browser import Browser
from console.running import console

from tools import ApiServer
from tools import kubectl as kubectl_program

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
NAMESPACE = "console"
Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(cluster: ApiServer) -> Iterator[Kubectl]:
    def run(*words: str) -> str:
        command = [kubectl_program(), f"--kubeconfig={cluster.kubeconfig}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    run("create", "namespace", NAMESPACE)
    run("-n", NAMESPACE, "create", "secret", "generic", "password", "--from-literal=word=hunter2")
    for name in ("apple", "banana", "cherry"):
        run("-n", NAMESPACE, "create", "configmap", name, "--from-literal=taste=sweet")
    yield run
    run("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture(scope="module")
def browser(cluster: ApiServer, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with console(cluster.kubeconfig, tmp_path_factory.mktemp("home")) as running, Browser() as made:
        made.open(running.url)
        made.wait_text("Nodes and their pods")
        yield made
        assert made.errors == []


def show(browser: Browser, page: str) -> None:
    browser.run(f"location.hash = {json.dumps(page)}")


def test_the_key_is_taken_out_of_the_address(browser: Browser) -> None:
    assert "key=" not in browser.run("location.href")


def test_a_list_follows_what_others_do(browser: Browser, kubectl: Kubectl) -> None:
    show(browser, "#/list/configmaps/apple")
    browser.wait("[...document.querySelectorAll('.grid .row')].length", lambda found: found == 1)
    show(browser, f"#/list/configmaps/{NAMESPACE}%20a")
    grid = "document.querySelector('.grid').innerText"
    browser.wait(grid, lambda found: {"apple", "banana"} <= set(found.split()))
    kubectl("-n", NAMESPACE, "create", "configmap", "apricot")
    browser.wait("document.querySelector('.grid').innerText.includes('apricot')")
    kubectl("-n", NAMESPACE, "delete", "configmap", "apricot")
    browser.wait("!document.querySelector('.grid').innerText.includes('apricot')")


def test_keys_lead_through_the_page(browser: Browser) -> None:
    show(browser, "#/")
    browser.wait_text("Nodes and their pods")
    browser.run("document.body.focus()")
    browser.type(":")
    browser.type("cm")
    browser.type("Enter")
    browser.wait("location.hash", lambda found: found == "#/list/configmaps")
    browser.wait("[...document.querySelectorAll('.grid .row')].length > 2")
    browser.type("/")
    browser.type("console cherry")
    browser.wait("[...document.querySelectorAll('.grid .row')].length", lambda found: found == 1)
    browser.type("Enter")
    browser.type("Enter")
    browser.wait("location.hash", lambda found: found == f"#/object/configmaps/{NAMESPACE}/cherry/summary")
    browser.type("y")
    browser.wait_text("taste: sweet")
    browser.type("Escape")
    browser.wait("location.hash", lambda found: found.endswith("/summary"))


def test_an_edit_shows_what_would_change_before_it_is_saved(browser: Browser, kubectl: Kubectl) -> None:
    show(browser, f"#/object/configmaps/{NAMESPACE}/banana/yaml")
    browser.click("button", "Edit")
    area = "document.querySelector('textarea')"
    assert "managedFields" not in browser.run(f"{area}.value")
    edit = (
        f"{area}.value = {area}.value.replace('taste: sweet', 'taste: sour'); {area}.dispatchEvent(new Event('input'))"
    )
    browser.run(edit)
    assert browser.run("document.querySelector('button.primary').disabled")
    browser.click("button", "Preview")
    browser.wait("document.querySelector('.added')?.innerText || ''", lambda found: "taste: sour" in found)
    assert "taste: sweet" in browser.run("document.querySelector('.removed').innerText")
    assert kubectl("-n", NAMESPACE, "get", "configmap", "banana", "-o", "jsonpath={.data.taste}") == "sweet"
    browser.click("button", "Save")
    browser.wait("document.querySelector('pre.code')?.innerText || ''", lambda found: "taste: sour" in found)
    assert kubectl("-n", NAMESPACE, "get", "configmap", "banana", "-o", "jsonpath={.data.taste}") == "sour"


def test_what_the_server_refuses_is_shown_and_nothing_is_saved(browser: Browser) -> None:
    show(browser, f"#/object/configmaps/{NAMESPACE}/cherry/yaml")
    browser.click("button", "Edit")
    area = "document.querySelector('textarea')"
    browser.run(f"{area}.value = {area}.value.replace('data:', 'dota:'); {area}.dispatchEvent(new Event('input'))")
    browser.click("button", "Preview")
    browser.wait(
        "document.querySelector('[role=alert]')?.innerText || ''", lambda found: 'unknown field "dota"' in found
    )
    assert browser.run("document.querySelector('button.primary').disabled")
    browser.errors = [each for each in browser.errors if "400" not in each]


def test_values_of_secrets_are_masked_until_asked_for(browser: Browser) -> None:
    show(browser, f"#/object/secrets/{NAMESPACE}/password/yaml")
    browser.wait_text("word: ******")
    assert "aHVudGVyMg" not in browser.text()
    assert browser.run("[...document.querySelectorAll('button')].find(e => e.innerText === 'Edit').disabled")
    browser.click("button", "Show values")
    browser.wait_text("aHVudGVyMg==")
    browser.click("button", "Hide values")
    browser.wait_text("word: ******")


def test_why_and_events_and_relations_of_an_object(browser: Browser) -> None:
    show(browser, f"#/object/namespaces/-/{NAMESPACE}/why")
    browser.wait("document.querySelector('.sentence')?.innerText || ''")
    show(browser, f"#/object/configmaps/{NAMESPACE}/apple/events")
    browser.wait_text("There are no events of this object.")
    show(browser, f"#/object/configmaps/{NAMESPACE}/apple/relations")
    browser.wait_text("No relations are known.")


def test_an_object_that_is_not_there_is_named(browser: Browser) -> None:
    show(browser, f"#/object/configmaps/{NAMESPACE}/none/summary")
    browser.wait_text('configmaps "none" not found')
    browser.errors = [each for each in browser.errors if "404" not in each]
    show(browser, "#/list/unicorns")
    browser.wait_text("The server has no kind unicorns.")


def test_metrics_of_the_server_are_drawn(browser: Browser) -> None:
    show(browser, "#/metrics")
    browser.wait_text("API server memory MiB")


def test_nodes_and_plugins_of_an_attempt_are_a_table(browser: Browser) -> None:
    script = """(async () => {
      const {table} = await import('./scheduling.js');
      const found = table({nodeName: 'one', weights: {Fit: 1, Spread: 2},
        scores: [{node: 'one', total: 250, plugins: {Fit: 50, Spread: 100}}, {node: 'two', total: 90, plugins: {Fit: 90, Spread: 0}}],
        refused: [{plugin: 'Taints', reasons: ['<b>no</b>'], nodes: ['three']}, {plugin: 'Fit', reasons: [], nodes: ['three']}]});
      return [...found.rows].map(row => [...row.cells].map(cell => cell.textContent));
    })()"""
    assert browser.run(script) == [
        ["Node", "Total", "Fit x1", "Spread x2", "Taints"],
        ["one *", "250", "50", "100", ""],
        ["two", "90", "90", "0", ""],
        ["three", "", "refused", "", "<b>no</b>"],
    ]


def test_a_server_that_records_nothing_says_so_on_the_page_of_the_trace(browser: Browser) -> None:
    show(browser, "#/trace/start")
    browser.wait_text("keeps no spans")
    assert browser.run("document.querySelector('.chip[aria-current]').innerText") == "The start of the cluster"
    browser.errors = [each for each in browser.errors if "422" not in each]


@pytest.mark.parametrize("page", ["#/", "#/list/configmaps", f"#/object/configmaps/{NAMESPACE}/apple/yaml"])
def test_everything_that_can_be_used_has_a_name(browser: Browser, page: str) -> None:
    show(browser, page)
    browser.wait("document.querySelector('main h1')?.innerText || ''")
    nodes = browser.accessibility()
    roles = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab", "grid", "tabpanel", "dialog"}
    nameless = [
        each for each in nodes if each["role"]["value"] in roles and not each.get("name", {}).get("value", "").strip()
    ]
    assert nameless == []
    found = {each["role"]["value"] for each in nodes}
    assert {"banner", "navigation", "main", "heading"} <= found


def test_the_screen_of_the_terminal_follows_its_sequences(browser: Browser) -> None:
    script = """(async () => {
      const {Screen} = await import('./screen.js');
      const lines = (text) => { const s = new Screen(10, 3); s.write(text); return s.lines.map(l => l.map(c => c.c).join('').trimEnd()); };
      const styled = new Screen(10, 3); styled.write('\\x1b[1;31mA\\x1b[0mB');
      return {
        plain: lines('one\\r\\ntwo'), wrapped: lines('0123456789ab'), scrolled: lines('a\\r\\nb\\r\\nc\\r\\nd'), back: lines('abc\\b\\bX'),
        placed: lines('\\x1b[2;3Hx'), erased: lines('abcdef\\x1b[3D\\x1b[K'), cleared: lines('abc\\x1b[2J'), inserted: lines('abc\\r\\x1b[2@'),
        deleted: lines('abcdef\\r\\x1b[2P'), region: lines('a\\r\\nb\\r\\nc\\x1b[1;2r\\x1b[2;1H\\n'), title: lines('\\x1b]0;x\\x07a'),
        alternate: lines('main\\x1b[?1049hother\\x1b[?1049l'), style: [styled.lines[0][0].s, styled.lines[0][1].s], huge: lines('\\x1b[99999999S\\x1b[999999@x'),
      };
    })()"""
    assert browser.run(script) == {
        "plain": ["one", "two", ""],
        "wrapped": ["0123456789", "ab", ""],
        "scrolled": ["b", "c", "d"],
        "back": ["aXc", "", ""],
        "placed": ["", "  x", ""],
        "erased": ["abc", "", ""],
        "cleared": ["", "", ""],
        "inserted": ["  abc", "", ""],
        "deleted": ["cdef", "", ""],
        "region": ["b", "", "c"],
        "title": ["a", "", ""],
        "alternate": ["main", "", ""],
        "style": ["1|0|0|0|#e5534b|", ""],
        "huge": ["x", "", ""],
    }


def test_a_hundred_thousand_rows_are_filtered_and_scrolled_with_few_in_the_page(browser: Browser) -> None:
    """The rows are made in the page: the server's part is tested elsewhere."""
    script = """(async () => {
      const {list} = await import('./list.js');
      const main = document.createElement('div'); main.style.cssText = 'position:fixed;inset:0;display:flex;flex-direction:column;background:#fff';
      document.body.append(main);
      const usual = window.fetch, stop = new AbortController();
      const items = (from, count) => Array.from({length: count}, (_, i) => ({cells: [`pod-${from + i}`, '1/1', 'Running', 0, '1m'],
        object: {metadata: {uid: `${from + i}`, name: `pod-${from + i}`, namespace: 'n', creationTimestamp: '2026-01-01T00:00:00Z'}}}));
      window.fetch = async (path) => {
        const query = new URL(path, location).searchParams;
        if (query.get('watch')) return new Promise(() => {});
        const from = Number(query.get('continue') || 0), count = Math.min(Number(query.get('limit')), 100000 - from), next = from + count;
        return new Response(JSON.stringify({kind: 'Table', metadata: {resourceVersion: '1', continue: next < 100000 ? String(next) : ''},
          columnDefinitions: ['Name', 'Ready', 'Status', 'Restarts', 'Age'].map(name => ({name, priority: 0})), rows: items(from, count)}));
      };
      try {
        list(main, {id: 'pods', resource: 'pods', kind: 'Pod', group: '', version: 'v1', namespaced: true}, {namespace: '', signal: stop.signal});
        const until = async (what) => { for (let i = 0; i < 2000 && !what(); i++) await new Promise(requestAnimationFrame); };
        await until(() => main.querySelector('.count').innerText === '100,000');
        const all = main.querySelector('.count').innerText, inPage = main.querySelectorAll('.row').length;
        const search = main.querySelector('#filter'); search.value = 'pod-99999'; search.dispatchEvent(new Event('input'));
        await until(() => main.querySelectorAll('.row').length === 1);
        const one = main.querySelector('.row').innerText.includes('pod-99999');
        search.value = ''; search.dispatchEvent(new Event('input'));
        await until(() => main.querySelectorAll('.row').length > 1);
        main.querySelector('.grid').scrollTop = 50000 * 26;
        await until(() => main.querySelector('.grid').innerText.includes('pod-50001'));
        return {all, inPage, one, scrolled: main.querySelector('.grid').innerText.includes('pod-50001')};
      } finally { window.fetch = usual; stop.abort(); main.remove(); history.replaceState(null, '', '#/'); }
    })()"""
    found = browser.run(script)
    assert found["all"] == "100,000"
    assert found["inPage"] < 100
    assert found["one"]
    assert found["scrolled"]
