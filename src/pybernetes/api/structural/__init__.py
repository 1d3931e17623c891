"""The schema of a CustomResourceDefinition applied to the objects of its kind; pure.

objects      a custom resource in memory: typed metadata, the rest as plain JSON values
accepting    unknown fields and nulls out, defaults in; compiled, with a slow and exact way behind it
checking     whether an object obeys the schema; compiled, the words come from `apiextensions.values`
listtypes    sets and maps in lists hold nothing twice
embedded     objects inside of objects
rules        `x-kubernetes-validations`, asked for every object; `rulecosts`: when a definition is written
jsonpath     the paths of printer columns
"""
