"""Reviews: objects that are posted, answered and not stored.

- `authentication`: TokenReview, SelfSubjectReview
- `authorization`: SubjectAccessReview and its local and self forms, SelfSubjectRulesReview
"""
