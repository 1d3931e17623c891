"""Images of containers: pull policy, credentials, image pull back-off (ErrImagePull, ImagePullBackOff).

manager       pulls a container's image, with back-off
credentials   the registry credentials in image pull secrets
pulled        which images were pulled with which credentials (imagePullCredentialsVerificationPolicy)
"""
