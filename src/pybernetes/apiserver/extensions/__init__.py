"""Kinds that users define: CustomResourceDefinitions, and the serving of their objects.

start         loads all that follows when there is a first definition
definitions   follows the definitions: what is served, the conditions in their status, the end of their objects
conditions    names accepted or taken, established, terminating; pure
version       one version of a kind: how its objects are read, checked, owned, printed; compiled when first used
store         its objects in the store, from and to other versions
strategy      what is special about them on their way there
conversion    the webhook between two versions
openapi       their schemas and operations in the documents
"""
