package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// gitStore is a repository at a revision. It is fetched with the git program, as a tree.
type gitStore struct {
	block gitBlock
	opts  Options
}

type gitBlock struct {
	Repo                  string     `json:"repo"`
	Revision              string     `json:"revision"`
	Branch                string     `json:"branch"`
	Depth                 int        `json:"depth"`
	Fetch                 []string   `json:"fetch"`
	SingleBranch          bool       `json:"singleBranch"`
	DisableSubmodules     bool       `json:"disableSubmodules"`
	InsecureIgnoreHostKey bool       `json:"insecureIgnoreHostKey"`
	InsecureSkipTLS       bool       `json:"insecureSkipTLS"`
	Username              *secretKey `json:"usernameSecret"`
	Password              *secretKey `json:"passwordSecret"`
	SSHPrivateKey         *secretKey `json:"sshPrivateKeySecret"`
}

func openGit(body program.JSON, opts Options) (Store, error) {
	s := gitStore{opts: opts}
	if err := json.Unmarshal(body, &s.block); err != nil {
		return nil, err
	}
	if s.block.Repo == "" {
		return nil, errors.New("repo is missing")
	}
	for _, word := range append([]string{s.block.Repo, s.block.Revision, s.block.Branch}, s.block.Fetch...) {
		if strings.HasPrefix(word, "-") {
			return nil, fmt.Errorf("%q begins like an option", word)
		}
	}
	return s, nil
}

// Stat asks the remote whether it is there.
func (s gitStore) Stat(ctx context.Context, key string) (Info, error) {
	if key != "" {
		return Info{}, fmt.Errorf("git artifact: %s: %w", key, fs.ErrNotExist)
	}
	return Info{Size: -1, Tree: true}, s.git(ctx, "", "ls-remote", "--quiet", s.block.Repo, "HEAD")
}

func (s gitStore) Get(context.Context, string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("a git repository %w", ErrTree)
}

func (s gitStore) Put(context.Context, string, io.Reader, int64) error {
	return fmt.Errorf("a git artifact %w", ErrReadOnly)
}

func (s gitStore) PutTree(context.Context, string, string) error {
	return fmt.Errorf("a git artifact %w", ErrReadOnly)
}

func (s gitStore) Delete(context.Context, string) error {
	return fmt.Errorf("a git artifact %w", ErrReadOnly)
}

func (s gitStore) List(context.Context, string) ([]Info, error) {
	return nil, errors.New("a git store cannot be listed")
}

// GetTree clones the repository, .git included, as Argo does.
func (s gitStore) GetTree(ctx context.Context, key, local string) error {
	full := local
	if key != "" {
		full = local + ".clone"
		defer os.RemoveAll(full)
	}
	args := []string{"clone", "--quiet"}
	if s.block.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(s.block.Depth))
	}
	if s.block.SingleBranch {
		args = append(args, "--single-branch")
	}
	if s.block.Branch != "" {
		args = append(args, "--branch", s.block.Branch)
	}
	if err := s.git(ctx, "", append(args, "--", s.block.Repo, full)...); err != nil {
		return err
	}
	for _, refs := range s.block.Fetch {
		if err := s.git(ctx, full, "fetch", "--quiet", "origin", refs); err != nil {
			return err
		}
	}
	if s.block.Revision != "" {
		if err := s.checkout(ctx, full); err != nil {
			return err
		}
	}
	if !s.block.DisableSubmodules {
		if err := s.git(ctx, full, "submodule", "update", "--quiet", "--init", "--recursive", "--force"); err != nil {
			return err
		}
	}
	if key == "" {
		return nil
	}
	root, err := os.OpenRoot(full)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(filepath.FromSlash(key)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(full, filepath.FromSlash(key)), local)
}

// checkout goes to the revision; one that a shallow clone does not have is fetched by itself.
func (s gitStore) checkout(ctx context.Context, folder string) error {
	err := s.git(ctx, folder, "checkout", "--quiet", "--force", s.block.Revision, "--")
	if err == nil {
		return nil
	}
	if s.git(ctx, folder, "fetch", "--quiet", "--depth", strconv.Itoa(max(1, s.block.Depth)), "origin", s.block.Revision) != nil {
		return err
	}
	return s.git(ctx, folder, "checkout", "--quiet", "--force", "FETCH_HEAD", "--")
}

// git runs the git program. Credentials go through its environment, so that they are in no command line.
func (s gitStore) git(ctx context.Context, folder string, args ...string) error {
	user, err := s.block.Username.read(s.opts, "usernameSecret")
	if err != nil {
		return err
	}
	password, err := s.block.Password.read(s.opts, "passwordSecret")
	if err != nil {
		return err
	}
	key, err := s.block.SSHPrivateKey.read(s.opts, "sshPrivateKeySecret")
	if err != nil {
		return err
	}
	name := s.opts.Git
	if name == "" {
		name = "git"
	}
	if user != "" || password != "" {
		const helper = `credential.helper=!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$SLUICE_GIT_USER" "$SLUICE_GIT_PASSWORD"; }; f`
		args = append([]string{"-c", "credential.helper=", "-c", helper}, args...)
	}
	if s.block.InsecureSkipTLS {
		args = append([]string{"-c", "http.sslVerify=false"}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"SLUICE_GIT_USER="+user, "SLUICE_GIT_PASSWORD="+password)
	if key != "" || s.block.InsecureIgnoreHostKey {
		ssh, remove, err := sshCommand(key, s.block.InsecureIgnoreHostKey)
		if err != nil {
			return err
		}
		defer remove()
		cmd.Env = append(cmd.Env, "GIT_SSH_COMMAND="+ssh)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[len(args)-min(len(args), 3)], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// sshCommand is how git reaches a host with a private key.
func sshCommand(key string, ignoreHostKey bool) (command string, remove func(), err error) {
	command, remove = "ssh -o BatchMode=yes", func() {}
	if ignoreHostKey {
		command += " -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
	}
	if key == "" {
		return command, remove, nil
	}
	f, err := os.CreateTemp("", "sluice-key-*")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.Remove(f.Name()) }
	_, err = io.WriteString(f, strings.TrimRight(key, "\n")+"\n")
	if err := errors.Join(err, f.Close()); err != nil {
		remove()
		return "", nil, err
	}
	return command + " -o IdentitiesOnly=yes -i '" + f.Name() + "'", remove, nil
}
