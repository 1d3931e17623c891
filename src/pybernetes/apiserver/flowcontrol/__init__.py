"""API priority and fairness: requests of a flow that floods the server wait, those of others do not.

FlowSchemas         which requests are alike           matching.py
priority levels     how many of them run at once       levels.py, borrowing.py
queues              in which order the others wait     queueset.py
turns               who comes first on our one thread  turns.py
seats               what a request is taken to cost    estimating.py
"""
