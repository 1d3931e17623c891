"""One container of a pod: how it is described to the runtime, started, and cleaned up after.

config                PodSandboxConfig and ContainerConfig for CRI
config_error          CreateContainerConfigError
starter               image, config, create, start, postStart hook of one container
hooks                 postStart and preStop hooks
hash                  the hash of a container's spec: has it changed since it started?
environment           `env` and `envFrom`
env_file              `fileKeyRef`: variables from a file in a volume
downward_api          pod fields and resources for variables and files
service_links         environment variables of Services
expansion             `$(NAME)` in command, args, env and subPathExpr
mounts                volume mounts, the hosts file, the termination message file
devices               devices of plugins and ResourceClaims, exclusive CPUs
security              security contexts as CRI takes them
apparmor              AppArmor profiles
sysctls               safe and allowed kernel parameters
hostname              hostname and domain of a pod
hosts_file            /etc/hosts
dns                   /etc/resolv.conf
termination_message   terminationMessagePath, terminationMessagePolicy
log_rotation          rotation and compression of container logs
"""
