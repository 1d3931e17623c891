"""Admission by expressions: ValidatingAdmissionPolicy and MutatingAdmissionPolicy."""
