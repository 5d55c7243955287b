"""HTTP: forms of requests, problems, routes, OpenAPI, metrics. Everything under /v1 stays as it is.

forms      what a request's body may hold
problems   errors as application/problem+json
heads      a time limit on the heads of requests
guard      limits on bodies, who asks, logs: around every request
api        /v1: questions, answers, budget, history
people     /v1: login and logout; one's own tokens
openapi    the description of all of it, from the forms
metrics    counts for Prometheus, no seconds of an engine
app        puts them together
"""
