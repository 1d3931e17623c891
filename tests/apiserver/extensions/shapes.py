"""Definitions in the shapes of well-known projects, written for these tests: certificates, rollouts, monitors."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer", "format": "int32"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}


def thing(*required: str, **properties: Schema) -> Schema:
    """An object."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


CONDITIONS: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": thing(
        "type",
        "status",
        type=TEXT,
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        reason=TEXT,
        message=TEXT,
        lastTransitionTime={"type": "string", "format": "date-time"},
        observedGeneration={"type": "integer", "format": "int64"},
    ),
}

SELECTOR: Schema = {
    **thing(
        matchLabels={"type": "object", "additionalProperties": TEXT},
        matchExpressions={
            "type": "array",
            "items": thing("key", "operator", key=TEXT, operator=TEXT, values=TEXTS),
        },
    ),
    "x-kubernetes-map-type": "atomic",
}

USAGES = ["signing", "digital signature", "key encipherment", "server auth", "client auth"]
CERTIFICATE: Schema = thing(
    "spec",
    spec={
        **thing(
            "secretName",
            "issuerRef",
            secretName={"type": "string", "minLength": 1, "maxLength": 253},
            issuerRef=thing("name", name=TEXT, kind={"type": "string", "default": "Issuer"}, group=TEXT),
            commonName={"type": "string", "maxLength": 64},
            dnsNames={"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 253}},
            duration={"type": "string", "default": "2160h"},
            renewBefore=TEXT,
            isCA=FLAG,
            usages={
                "type": "array",
                "default": ["digital signature", "key encipherment"],
                "items": {"type": "string", "enum": USAGES},
            },
            privateKey=thing(
                algorithm={"type": "string", "enum": ["RSA", "ECDSA", "Ed25519"]},
                size=NUMBER,
                rotationPolicy={"type": "string", "enum": ["Never", "Always"], "default": "Always"},
            ),
            keystores=thing(
                jks=thing(
                    "create",
                    "passwordSecretRef",
                    create=FLAG,
                    passwordSecretRef=thing("name", name=TEXT, key=TEXT),
                )
            ),
        ),
        "x-kubernetes-validations": [
            {
                "rule": "has(self.commonName) || (has(self.dnsNames) && self.dnsNames.size() > 0)",
                "message": "a name is needed",
            }
        ],
    },
    status=thing(conditions=CONDITIONS, notAfter={"type": "string", "format": "date-time"}, revision=NUMBER),
)
CERTIFICATE_COLUMNS = [
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Secret", "type": "string", "jsonPath": ".spec.secretName"},
    {"name": "Issuer", "type": "string", "jsonPath": ".spec.issuerRef.name", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]

INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
STEP: Schema = thing(
    setWeight={**NUMBER, "minimum": 0, "maximum": 100},
    pause=thing(duration=INT_OR_STRING),
    analysis=thing(
        templates={"type": "array", "items": thing(templateName=TEXT, clusterScope=FLAG)},
        args={"type": "array", "items": thing("name", name=TEXT, value=TEXT)},
    ),
)
ROLLOUT: Schema = thing(
    "spec",
    spec=thing(
        "template",
        replicas={**NUMBER, "default": 1},
        selector=SELECTOR,
        revisionHistoryLimit={**NUMBER, "default": 10},
        progressDeadlineSeconds=NUMBER,
        template={
            **thing(
                metadata={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                spec={
                    "type": "object",
                    "required": ["containers"],
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {
                        "containers": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": {
                                **thing("name", name=TEXT, image=TEXT),
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        }
                    },
                },
            ),
        },
        strategy={
            **thing(
                blueGreen=thing("activeService", activeService=TEXT, previewService=TEXT),
                canary=thing(
                    maxSurge=INT_OR_STRING,
                    maxUnavailable=INT_OR_STRING,
                    steps={"type": "array", "items": STEP},
                ),
            ),
            "oneOf": [{"required": ["blueGreen"]}, {"required": ["canary"]}],
        },
    ),
    status=thing(replicas=NUMBER, selector=TEXT, phase=TEXT, conditions=CONDITIONS),
)

PERIOD = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
RELABELING: Schema = thing(
    action={"type": "string", "default": "replace", "enum": ["replace", "keep", "drop", "labelmap", "labeldrop"]},
    sourceLabels={"type": "array", "items": {"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"}},
    regex=TEXT,
    modulus={"type": "integer", "format": "int64"},
    targetLabel=TEXT,
)
MONITOR: Schema = thing(
    "spec",
    spec=thing(
        "endpoints",
        "selector",
        selector=SELECTOR,
        namespaceSelector=thing(any=FLAG, matchNames=TEXTS),
        jobLabel=TEXT,
        sampleLimit={"type": "integer", "format": "int64", "minimum": 0},
        endpoints={
            "type": "array",
            "items": thing(
                port=TEXT,
                targetPort=INT_OR_STRING,
                path=TEXT,
                scheme={"type": "string", "enum": ["http", "https"]},
                interval={"type": "string", "pattern": PERIOD},
                params={"type": "object", "additionalProperties": TEXTS},
                honorLabels=FLAG,
                relabelings={"type": "array", "items": RELABELING},
                basicAuth=thing(
                    username={
                        **thing("key", key=TEXT, name={"type": "string", "default": ""}, optional=FLAG),
                        "x-kubernetes-map-type": "atomic",
                    }
                ),
            ),
        },
    ),
)
