"""CPUs of their own for containers of Guaranteed pods that ask for whole ones (`cpuManagerPolicy: static`)."""
