"""Groups and versions that other API servers serve: APIServices, and the way to those servers.

start         what a server without such APIServices pays: a follower; loads all else when there is one
registration  APIServices of what is served here come and go by themselves
service       one APIService that is served elsewhere: is it there, what does it serve
availability  the condition Available, in upstream's words
discovery     what the other server says it serves, in the form in which we say it
proxy         requests on their way to it and back
transport     connections to it
identity      as whom we come, and for whom we ask
openapi       its part of the documents
"""
