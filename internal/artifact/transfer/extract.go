package transfer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrHostile says that an archive's entry reaches outside of the archive, or is nothing that an artifact can hold.
var ErrHostile = errors.New("archive refused")

// extraction unpacks entries below one folder. An os.Root is what keeps them inside; the checks before it are there for
// clear messages.
type extraction struct {
	root  *os.Root
	meter *meter
	// modes of folders are set last, so that one without write permission can be filled.
	folders map[string]fs.FileMode
	links   map[string]string
}

func newExtraction(folder string, m *meter) (*extraction, error) {
	if err := os.Mkdir(folder, 0o777); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &extraction{root: root, meter: m, folders: map[string]fs.FileMode{}, links: map[string]string{}}, nil
}

// name checks an entry's name and gives its path below the root; "" is the root itself.
func (x *extraction) name(entry string) (string, error) {
	if err := x.meter.entry(); err != nil {
		return "", err
	}
	if strings.ContainsRune(entry, 0) || strings.Contains(entry, "\\") && filepath.Separator == '\\' {
		return "", fmt.Errorf("%w: entry name %q", ErrHostile, entry)
	}
	clean := path.Clean(entry)
	if clean == "." {
		return "", nil
	}
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", fmt.Errorf("%w: entry %q lies outside of the archive", ErrHostile, entry)
	}
	return filepath.FromSlash(clean), nil
}

// parent makes the folder that an entry lies in, and takes away what lies in its own place. A folder behind a link is
// refused: a link made there would lead to somewhere else than its text says.
func (x *extraction) parent(name string) error {
	dir := filepath.Dir(name)
	for up := dir; up != "."; up = filepath.Dir(up) {
		if _, link := x.links[up]; link {
			return fmt.Errorf("%w: entry %q lies behind the link %q", ErrHostile, name, up)
		}
	}
	if dir != "." {
		if err := x.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	delete(x.links, name)
	if info, err := x.root.Lstat(name); err == nil && !info.IsDir() {
		return x.root.Remove(name)
	}
	return nil
}

func (x *extraction) folder(entry string, mode fs.FileMode) error {
	name, err := x.name(entry)
	if err != nil || name == "" {
		return err
	}
	if err := x.parent(name); err != nil {
		return err
	}
	if err := x.root.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	x.folders[name] = mode.Perm()
	return nil
}

func (x *extraction) file(entry string, mode fs.FileMode, r io.Reader) error {
	name, err := x.name(entry)
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("%w: a file without a name", ErrHostile)
	}
	if err := x.parent(name); err != nil {
		return err
	}
	f, err := x.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode.Perm()|0o600)
	if err != nil {
		return err
	}
	err = x.meter.copy(f, r)
	return errors.Join(err, f.Close())
}

// symlink makes a link that stays inside, by its text; where it really leads is looked at in the end.
func (x *extraction) symlink(entry, target string) error {
	name, err := x.name(entry)
	if err != nil {
		return err
	}
	if name == "" || strings.ContainsRune(target, 0) || !staysInside(name, target) {
		return fmt.Errorf("%w: link %q to %q leaves the archive", ErrHostile, entry, target)
	}
	if err := x.parent(name); err != nil {
		return err
	}
	if err := x.root.Symlink(target, name); err != nil {
		return err
	}
	x.links[name] = target
	return nil
}

// staysInside says whether a link's text leads to somewhere inside.
func staysInside(name, target string) bool {
	inside := path.Join(path.Dir(filepath.ToSlash(name)), target)
	return !path.IsAbs(target) && (inside == "." || filepath.IsLocal(filepath.FromSlash(inside)))
}

// hardlink makes a second name for an earlier entry.
func (x *extraction) hardlink(entry, target string) error {
	name, err := x.name(entry)
	if err != nil {
		return err
	}
	old := filepath.FromSlash(path.Clean(target))
	if name == "" || !filepath.IsLocal(old) {
		return fmt.Errorf("%w: link %q to %q leaves the archive", ErrHostile, entry, target)
	}
	if info, err := x.root.Lstat(old); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: link %q to %q, which is not a file", ErrHostile, entry, target)
	}
	if name == old {
		return nil
	}
	if err := x.parent(name); err != nil {
		return err
	}
	return x.root.Link(old, name)
}

// finish sets the modes of folders and closes.
func (x *extraction) finish(err error) error {
	if err == nil {
		for name, mode := range x.folders {
			// A link may have taken the folder's name since.
			if info, e := x.root.Lstat(name); e == nil && info.IsDir() {
				err = errors.Join(err, x.root.Chmod(name, mode|0o700))
			}
		}
	}
	return errors.Join(err, x.root.Close())
}

// settle moves what was unpacked into folder to next: the only entry at the top, or the folder itself.
func (x *extraction) settle(folder, next string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	top := ""
	if len(entries) == 1 && (entries[0].IsDir() || entries[0].Type().IsRegular()) {
		top = entries[0].Name()
	}
	if err := x.checkLinks(folder, top); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(folder, top), next); err != nil {
		return err
	}
	if top == "" {
		return nil
	}
	return os.Remove(folder)
}

// checkLinks follows every link and refuses those that leave what becomes the artifact. Links to nothing are allowed.
func (x *extraction) checkLinks(folder, top string) error {
	if len(x.links) == 0 {
		return nil
	}
	root, err := os.OpenRoot(filepath.Join(folder, top))
	if err != nil {
		return err
	}
	defer root.Close()
	for name, target := range x.links {
		rel, err := filepath.Rel(filepath.Join(".", top), name)
		if err != nil {
			return err
		}
		_, err = root.Stat(rel)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || !staysInside(rel, target) {
			return fmt.Errorf("%w: link %q to %q leaves the archive", ErrHostile, name, target)
		}
	}
	return nil
}
