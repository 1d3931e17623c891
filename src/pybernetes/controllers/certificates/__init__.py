"""Approves, signs and removes CertificateSigningRequests."""
