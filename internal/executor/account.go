package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// account is someone else than this process that a command runs as. Where it is nil the command runs as this process.
type account struct {
	uid, gid int
	groups   []uint32
	home     string
}

// lookUsers finds the accounts of the containers that name a user, and tells their commands where their home is.
func lookUsers(task spec.Spec) (map[string]*account, error) {
	users := map[string]*account{}
	for i, c := range task.Containers {
		if c.User == "" {
			continue
		}
		a, err := lookUser(c.User)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", c.Name, err)
		}
		if a.uid == os.Geteuid() && a.gid == os.Getegid() {
			continue
		}
		users[c.Name] = a
		// It comes from the environment of this process, where it is that of another account.
		for k, v := range c.Env {
			if c.Inherit && (v == "HOME=/root" || v == "HOME=/") {
				task.Containers[i].Env[k] = "HOME=" + a.home
			}
		}
	}
	return users, nil
}

// lookUser reads a user as image files have it: name or number, and the group's after a colon. A number needs no entry in
// the place's list of users.
func lookUser(text string) (*account, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	a := &account{home: "/"}
	uid, numberErr := strconv.Atoi(name)
	known, err := user.Lookup(name)
	if err != nil && numberErr == nil {
		known, err = user.LookupId(name)
	}
	switch {
	case err == nil:
		a.home = known.HomeDir
		if a.uid, err = strconv.Atoi(known.Uid); err != nil {
			return nil, fmt.Errorf("user %q: %w", text, err)
		}
		if a.gid, err = strconv.Atoi(known.Gid); err != nil {
			return nil, fmt.Errorf("user %q: %w", text, err)
		}
	case numberErr == nil:
		a.uid = uid
	default:
		return nil, fmt.Errorf("user %q: there is no such user in the image", text)
	}
	if hasGroup {
		if a.gid, err = lookGroup(group); err != nil {
			return nil, fmt.Errorf("user %q: %w", text, err)
		}
		return a, nil
	}
	if known != nil {
		ids, _ := known.GroupIds() // without a list of groups there are no others
		for _, id := range ids {
			if gid, err := strconv.ParseUint(id, 10, 32); err == nil {
				a.groups = append(a.groups, uint32(gid))
			}
		}
	}
	return a, nil
}

func lookGroup(name string) (int, error) {
	if gid, err := strconv.Atoi(name); err == nil {
		return gid, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q in the image", name)
	}
	return strconv.Atoi(g.Gid)
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid), Groups: a.groups}
}

// makeFolder makes a folder and those above it, which belong to the account so far as they were not there.
func (a *account) makeFolder(name string) error {
	missing := ""
	if a != nil {
		for at := filepath.Clean(name); ; at = filepath.Dir(at) {
			if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			missing = at
		}
	}
	if err := os.MkdirAll(name, 0o777); err != nil {
		return err
	}
	if missing == "" {
		return nil
	}
	return a.give(missing)
}

// give makes a file or folder and all in it the account's.
func (a *account) give(name string) error {
	if a == nil {
		return nil
	}
	return filepath.WalkDir(name, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(file, a.uid, a.gid)
	})
}

// owner is the account that inputs and the folders for outputs belong to: the main container's.
func (j *job) owner() *account {
	if name := mainName(j.task); name != "" {
		return j.users[name]
	}
	return j.users[j.task.Containers[0].Name]
}

// handBack gives all in the task folder to whom the folder belongs: a container's root may be root outside, too, where
// who runs the backend is not.
func (j *job) handBack(folder string) error {
	if !j.task.Launched || os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("hand back the task folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 {
		return nil
	}
	whose := &account{uid: int(stat.Uid), gid: int(stat.Gid)}
	if err := whose.give(folder); err != nil {
		return fmt.Errorf("hand back the task folder: %w", err)
	}
	return nil
}
