"""`KubeletConfiguration`: what a file says, with upstream's defaults; what this kubelet cannot do is refused."""
