# The controller and the command line: one static program. make images puts it and the certificate authorities into
# build/image first.
FROM scratch
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY sluice /sluice
USER 8737:8737
ENTRYPOINT ["/sluice"]
