"""`KubeSchedulerConfiguration` files: what is refused, in which words, and what is meant where nothing is said."""

from __future__ import annotations

import pytest

from pybernetes.api.configfile import ConfigError
from pybernetes.scheduler.config.load import default, load
from pybernetes.scheduler.config.plugins import DEFAULTS, plugin_set
from pybernetes.scheduler.config.v1.args import ARGS

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(text.encode())
    return str(caught.value)


def args_refusal(plugin: str, args: str) -> str:
    return refusal(f"{HEAD}profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]\n")


def test_a_file_that_says_nothing_is_the_default() -> None:
    assert load(HEAD.encode()) == default()


def test_defaults() -> None:
    config = default()
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (16, 0)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    election, connection = config.leader_election, config.client_connection
    assert election is not None
    assert connection is not None
    assert (election.leader_elect, election.resource_lock) == (True, "leases")
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == ("15s", "10s", "2s")
    assert (election.resource_namespace, election.resource_name) == ("kube-system", "kube-scheduler")
    assert (connection.qps, connection.burst) == (50.0, 100)
    (profile,) = config.profiles or ()
    assert profile.scheduler_name == "default-scheduler"
    assert profile.plugins is not None
    enabled = plugin_set(profile.plugins, "multiPoint").enabled or []
    assert [(each.name, each.weight) for each in enabled] == list(DEFAULTS)
    assert sorted(each.name or "" for each in profile.plugin_config or ()) == sorted(ARGS)


def test_defaults_of_arguments() -> None:
    (profile,) = default().profiles or ()
    args = {each.name: each.args for each in profile.plugin_config or ()}
    assert args["DefaultPreemption"].min_candidate_nodes_percentage == 10
    assert args["DefaultPreemption"].min_candidate_nodes_absolute == 100
    assert args["InterPodAffinity"].hard_pod_affinity_weight == 1
    assert args["PodTopologySpread"].defaulting_type == "System"
    assert args["VolumeBinding"].bind_timeout_seconds == 600
    assert args["DynamicResources"].filter_timeout == "10s"
    assert args["DynamicResources"].binding_timeout == "10m0s"
    strategy = args["NodeResourcesFit"].scoring_strategy
    assert strategy.type == "LeastAllocated"
    for resources in (strategy.resources, args["NodeResourcesBalancedAllocation"].resources):
        assert [(each.name, each.weight) for each in resources] == [("cpu", 1), ("memory", 1)]


def test_what_is_given_stays_and_the_rest_of_the_arguments_is_filled_in() -> None:
    text = f"""{HEAD}profiles:
- schedulerName: mine
  percentageOfNodesToScore: 0
  pluginConfig:
  - name: DefaultPreemption
    args: {{minCandidateNodesPercentage: 0}}
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated, resources: [{{name: x.io/gpu, weight: 3}}, {{name: cpu}}]}}}}
  - name: Foreign
    args: {{anything: [1, {{deep: true}}]}}
"""
    (profile,) = load(text.encode()).profiles or ()
    args = {each.name: each.args for each in profile.plugin_config or ()}
    assert profile.percentage_of_nodes_to_score == 0
    assert args["DefaultPreemption"].min_candidate_nodes_percentage == 0
    assert args["DefaultPreemption"].min_candidate_nodes_absolute == 100
    resources = args["NodeResourcesFit"].scoring_strategy.resources
    assert [(each.name, each.weight) for each in resources] == [("x.io/gpu", 3), ("cpu", 1)]
    assert args["Foreign"] == {"anything": [1, {"deep": True}]}


def test_json_is_read_too() -> None:
    text = b'{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","parallelism":3}'
    assert load(text).parallelism == 3


def test_unknown_and_repeated_fields_at_every_depth_are_reported_at_once() -> None:
    text = f"""{HEAD}foo: 1
parallelism: 1
parallelism: 2
profiles:
- bar: x
  pluginConfig:
  - name: NodeResourcesFit
    args: {{foo: x}}
  - name: InterPodAffinity
    args: {{zap: 1}}
"""
    assert refusal(text) == (
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "parallelism" already set in map, '
        'unknown field "foo", unknown field "profiles[0].bar", '
        "decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeResourcesFit: "
        'strict decoding error: unknown field "foo", '
        "decoding .profiles[0].pluginConfig[1]: strict decoding error: decoding args for plugin InterPodAffinity: "
        'strict decoding error: unknown field "zap"'
    )


SCHEME = 'in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Object 'Kind' is missing in ''"),
        ("kind: KubeSchedulerConfiguration", "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration'"),
        ("apiVersion: v1\nkind: Pod\n", f'no kind "Pod" is registered for version "v1" {SCHEME}'),
        (
            HEAD.replace("/v1", "/v1beta3"),
            'no kind "KubeSchedulerConfiguration" is registered for version '
            f'"kubescheduler.config.k8s.io/v1beta3" {SCHEME}',
        ),
        (
            HEAD + "parallelism: x\n",
            "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        (
            "kind: 5\n",
            "couldn't get version/kind; json parse error: "
            "json: cannot unmarshal number into Go struct field .kind of type string",
        ),
        (HEAD + "metadata: {name: x}\n", 'strict decoding error: unknown field "metadata"'),
    ],
)
def test_files_of_the_wrong_form(text: str, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parallelism: 0", "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            "podInitialBackoffSeconds: 11",
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        ("clientConnection: {burst: -1}", "clientConnection.burst: Invalid value: -1: must be non-negative"),
        (
            "leaderElection: {retryPeriod: -1s}",
            'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
        ),
        (
            "leaderElection: {leaseDuration: 1s}",
            'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        ),
        (
            "leaderElection: {resourceLock: endpoints}",
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles[1].schedulerName: Duplicate value: {}",
        ),
        (
            "profiles: [{percentageOfNodesToScore: -1}]",
            "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: "
            "[{name: X, weight: 3}]}}}]",
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"X","Weight":3}],"Disabled":null}: '
            "must be the same for all profiles",
        ),
        (
            "profiles: [{plugins: {queueSort: {enabled: [{name: V}, {name: W}]}}}]",
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]",
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
        ),
        (
            "extenders: [{urlPrefix: x, prioritizeVerb: p}]",
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            "extenders: [{urlPrefix: x, bindVerb: b}, {urlPrefix: z, bindVerb: b}]",
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ),
        (
            "extenders: [{urlPrefix: x, managedResources: [{name: cpu}]}]",
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
        ),
        (
            "extenders: [{urlPrefix: x, managedResources: [{name: a/b}, {name: a/b}]}]",
            'extenders[0].managedResources[1].name: Invalid value: "a/b": duplicate extender managed resource name',
        ),
        (
            "profiles: [{pluginConfig: [{name: X}, {name: X}]}]",
            'profiles[0].pluginConfig[1]: Duplicate value: "X"',
        ),
    ],
)
def test_content_that_is_refused(text: str, message: str) -> None:
    assert refusal(HEAD + text + "\n") == message


def test_all_errors_are_reported_at_once() -> None:
    assert refusal(HEAD + "parallelism: -1\npercentageOfNodesToScore: -1\n") == (
        "[parallelism: Invalid value: -1: should be an integer value greater than zero, "
        "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]]"
    )


def test_the_lock_does_not_matter_without_an_election() -> None:
    load(f"{HEAD}leaderElection: {{leaderElect: false, leaseDuration: -1s, resourceLock: foo}}\n".encode())


AT = "profiles[0].pluginConfig[0].args"
TERMS = "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "


@pytest.mark.parametrize(
    ("plugin", "args", "message"),
    [
        (
            "InterPodAffinity",
            "{hardPodAffinityWeight: 101}",
            f"{AT}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            f"[{AT}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
            f"minCandidateNodesAbsolute, {AT}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same "
            "time as minCandidateNodesPercentage]",
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesAbsolute: -1}",
            f"{AT}.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            "VolumeBinding",
            "{shape: [{utilization: 1, score: 2}]}",
            f'{AT}.shape: Invalid value: [{{"Utilization":1,"Score":2}}]: unexpected field `shape`, remove it or turn '
            "on the feature gate StorageCapacityScoring",
        ),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            f'{AT}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
        ),
        (
            "PodTopologySpread",
            "{defaultingType: Foo}",
            f'{AT}.defaultingType: Unsupported value: "Foo": supported values: "System", "List"',
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: X}]}",
            f'[{AT}.defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME_RULE}, '
            f'{AT}.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"]',
        ),
        (
            "NodeAffinity",
            f"{{addedAffinity: {{{TERMS}[{{matchExpressions: [{{key: a, operator: Foo}}]}}]}}}}}}",
            f"{AT}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            '.matchExpressions[0].operator: Unsupported value: "Foo": supported values: "In", "NotIn", "Exists", '
            '"DoesNotExist", "Gt", "Lt"',
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}, {name: cpu}]}",
            f'[{AT}.resources[0].weight: Invalid value: 2: must be 1, {AT}.resources[1].name: Duplicate value: "cpu"]',
        ),
        (
            "DynamicResources",
            "{filterTimeout: -1s, bindingTimeout: 1ms}",
            f'[{AT}.filterTimeout: Invalid value: "-1s": must be zero or positive, '
            f'{AT}.bindingTimeout: Invalid value: "1ms": must be at least 1 second]',
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: Foo, resources: [{name: cpu, weight: 101}]}, ignoredResourceGroups: [a/b]}",
            f"[{AT}.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/', "
            f'{AT}.scoringStrategy.type: Unsupported value: "Foo": supported values: "LeastAllocated", '
            f'"MostAllocated", "RequestedToCapacityRatio", {AT}.scoringStrategy.resources[0].weight: Invalid value: '
            "101: resource weight of cpu not in valid range (0, 100]]",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
            f"{AT}.scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is "
            "RequestedToCapacityRatio",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 50, score: 11}, {utilization: 10, score: 1}]}}}",
            f"[{AT}.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 10: values must be "
            f"sorted in increasing order, {AT}.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid "
            "value: 11: not in valid range [0, 10]]",
        ),
        (
            "NodeAffinity",
            "{kind: NodeResourcesFitArgs, apiVersion: kubescheduler.config.k8s.io/v1}",
            "decoding .profiles[0].pluginConfig[0]: args for plugin NodeAffinity were not of type "
            "NodeAffinityArgs.kubescheduler.config.k8s.io, got NodeResourcesFitArgs.kubescheduler.config.k8s.io",
        ),
        (
            "DynamicResources",
            "{bindingTimeout: xs}",
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DynamicResources: "
            'time: invalid duration "xs"',
        ),
    ],
)
def test_arguments_that_are_refused(plugin: str, args: str, message: str) -> None:
    assert args_refusal(plugin, args) == message
