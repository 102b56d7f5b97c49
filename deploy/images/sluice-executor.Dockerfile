# The program that is copied into every task's pod, and wraps its command: see the init container of a task pod.
FROM scratch
COPY sluice-executor /sluice-executor
USER 8737:8737
ENTRYPOINT ["/sluice-executor"]
