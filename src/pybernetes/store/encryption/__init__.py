"""Values that a thief of the disk cannot read: which (`configuration`), how (`providers`), and where (`store`)."""
