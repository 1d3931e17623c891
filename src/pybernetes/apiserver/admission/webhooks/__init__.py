"""Admission by servers of the user's own: MutatingAdmissionWebhook and ValidatingAdmissionWebhook."""
