"""The console's page with a real pod: its logs as they come, and a shell in it."""

from __future__ import annotations

import shutil

import pytest
from console.browser import Browser
from console.running import console
from node.cluster import Cluster
from node.runtimes import only

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")


@only("embedded")
def test_a_pods_logs_and_shell_in_the_browser(node: Cluster) -> None:
    script = "trap 'exit 0' TERM; i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.1; done"
    node.kubectl("run", "console", "--image=busybox:1.35", "--grace-period=1", "--", "sh", "-c", script)
    node.kubectl("wait", "pod/console", "--for=condition=Ready", "--timeout=110s")
    with console(node.layout.kubeconfig, node.folder) as running, Browser() as browser:
        browser.open(running.url)
        browser.wait_text("Nodes and their pods")
        browser.wait("document.querySelector('a.dot[title=\"default/console: Running\"]') !== null")
        browser.run("location.hash = '#/object/pods/default/console/logs'")
        browser.wait_text("line-3")
        seen = browser.run("document.querySelectorAll('[role=log] div').length")
        browser.wait("document.querySelectorAll('[role=log] div').length", lambda found: found > seen)
        browser.run("location.hash = '#/object/pods/default/console/shell'")
        browser.wait_text("Connected")
        browser.type("echo $((6*7))-$(hostname)")
        browser.type("Enter")
        browser.wait_text("42-console")
        browser.type("exit")
        browser.type("Enter")
        browser.wait_text("Ended")
        browser.run("location.hash = '#/object/pods/default/console/why'")
        browser.wait_text("it is running and ready, on node node-1")
        browser.run("location.hash = '#/object/pods/default/console/trace'")
        browser.wait_text("create pods")
        browser.run("location.hash = '#/object/pods/default/console/scheduling'")
        browser.wait_text("1 of 1")
        browser.run("location.hash = '#/trace/start'")
        browser.wait_text("serviceaccount-controller")
        browser.run("location.hash = '#/metrics'")
        browser.wait("document.querySelector('main').innerText.includes('kubelet of node-1: pods')")
        assert browser.errors == []
    node.kubectl("delete", "pod", "console", "--wait=false")
