package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The credentials of the object store, in the Secret that Argo's manifests name.
const (
	S3Secret    = "my-minio-cred"
	s3AccessKey = "admin"
	s3SecretKey = "password"
)

// S3Credentials is what that Secret holds.
func S3Credentials() map[string]any {
	return map[string]any{"accesskey": s3AccessKey, "secretkey": s3SecretKey}
}

// Buckets are those that Argo's manifests use.
func Buckets() []string { return []string{"my-bucket", "my-bucket-2", "my-bucket-3"} }

// s3Server is a gateway that serves a folder as an object store, at an address that pods reach.
type s3Server struct {
	address string
	cmd     *exec.Cmd
	ended   chan error
}

// startS3 runs a gateway program on a folder.
func startS3(ctx context.Context, program, folder, log string) (*s3Server, error) {
	for _, bucket := range Buckets() {
		if err := os.MkdirAll(filepath.Join(folder, bucket), 0o755); err != nil {
			return nil, fmt.Errorf("make a bucket: %w", err)
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	s := &s3Server{address: fmt.Sprintf("%s:%d", hostAddress, port), ended: make(chan error, 1)}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, "--port", fmt.Sprintf("0.0.0.0:%d", port), "--access", s3AccessKey, "--secret", s3SecretKey, "posix", folder)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the object store: %w", err), out.Close())
	}
	go func() { s.ended <- errors.Join(s.cmd.Wait(), out.Close()) }()
	return s, s.await(ctx)
}

// await waits until the store takes connections.
func (s *s3Server) await(ctx context.Context) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-s.ended:
			return fmt.Errorf("the object store ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the object store does not answer: %w", err)
		case <-tick.C:
		}
	}
}

func (s *s3Server) close() {
	_ = s.cmd.Process.Kill() // it keeps nothing that counts
	if err := <-s.ended; err != nil {
		return // it was killed
	}
}

// freePort finds a port that nothing listens at.
func freePort(ctx context.Context) (int, error) {
	listen, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "0.0.0.0:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	address, ok := listen.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("find a free port: %v is no address of TCP", listen.Addr()), listen.Close())
	}
	return address.Port, listen.Close()
}
