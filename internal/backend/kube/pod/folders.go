package pod

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// folders says where the task's inputs and outputs can be written. A user that is not root may write nowhere in most
// images, so a folder gets an emptyDir, unless a mount of the author is there, or the emptyDir would hide what the image
// needs: then the file is read or written in place, by the rights that the command has.
type folders struct {
	// mounts are the folders to mount emptyDirs at, none inside another.
	mounts []string
	// make are the folders that the executor makes before the command starts.
	make []string
	// before are the paths of inputs that have to be there before the container is.
	before []string
}

// systemFolders may never be hidden, with what is in them; homes and the like only as they are.
func systemFolders() []string {
	return []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"}
}

func usedFolders() []string {
	return []string{"/", "/home", "/opt", "/root", "/run", "/srv", "/var"}
}

// within says whether a path is a folder or lies in it.
func within(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}

// plan decides for one container. KFP's tasks find the folders of their outputs made.
func (b *builder) plan(c *corev1.Container, task *spec.Spec) folders {
	var f folders
	var wanted map[string]want
	if c.Name == b.main {
		wanted = b.wantedFolders(task)
	}
	root := asksForRoot(&b.pod.Spec, c) && !readOnly(c)
	var mounts []string
	for _, folder := range sortedKeys(wanted) {
		typed := wanted[folder].typed
		writable, mounted := authors(c, folder)
		place := outerFolder(folder)
		switch {
		case mounted:
			if writable && typed {
				f.make = append(f.make, folder)
			}
		case folder == spec.PodDir: // an emptyDir, too
		case root && wanted[folder].output: // it can be made there, as what it will be
		case within(folder, spec.PodDir), root:
			f.make = append(f.make, folder)
		case place == "/tmp" || !b.hides(c, place, task):
			mounts = append(mounts, place)
			f.make = append(f.make, folder)
		default:
			if typed {
				f.make = append(f.make, folder)
			}
			f.before = append(f.before, inputsIn(folder, task)...)
		}
	}
	if _, mounted := authors(c, "/tmp"); readOnly(c) && !mounted {
		mounts = append(mounts, "/tmp")
	}
	slices.Sort(mounts)
	for _, m := range slices.Compact(mounts) {
		if !slices.ContainsFunc(f.mounts, func(outer string) bool { return within(m, outer) }) {
			f.mounts = append(f.mounts, m)
		}
	}
	// An emptyDir is there already.
	f.make = slices.DeleteFunc(f.make, func(folder string) bool { return folder == "/" || slices.Contains(f.mounts, folder) })
	return f
}

// inputsIn lists the inputs right in a folder that can be mounted: not what would hide all of the system or of a home.
func inputsIn(folder string, task *spec.Spec) []string {
	var out []string
	for _, in := range task.Inputs {
		p := path.Clean(in.Path)
		if path.IsAbs(p) && path.Dir(p) == folder && !slices.Contains(usedFolders(), p) && !slices.Contains(systemFolders(), p) {
			out = append(out, in.Path)
		}
	}
	return out
}

// outerFolder is where to mount an emptyDir that a folder is to be in: for what is temporary and for KFP's paths, which
// are made of URIs, the top folder, else the folder itself.
func outerFolder(folder string) string {
	top, _, _ := strings.Cut(folder[1:], "/")
	if slices.Contains([]string{"tmp", "s3", "minio", "gcs", "oci"}, top) {
		return "/" + top
	}
	return folder
}

// want is why a folder is wanted.
type want struct {
	typed  bool // it is for outputs of KFP's
	output bool // it is itself an output
}

// wantedFolders are the folders of all that the task is given or leaves.
func (b *builder) wantedFolders(task *spec.Spec) map[string]want {
	wanted := map[string]want{}
	around := func(file string, typed bool) {
		if path.IsAbs(file) {
			folder := path.Dir(path.Clean(file))
			wanted[folder] = want{typed: typed || wanted[folder].typed}
		}
	}
	around(task.ExecutorOutput, true)
	for _, o := range b.cmd.Outputs.Parameters {
		around(o.Path, o.Type != program.Any)
	}
	inputs := map[string]bool{}
	for _, in := range task.Inputs {
		inputs[path.Clean(in.Path)] = true
		around(in.Path, false)
	}
	for _, o := range b.cmd.Outputs.Artifacts {
		for _, file := range []string{o.Path, o.KeyFrom, o.MetadataFrom} {
			around(file, o.Type != "")
		}
		// What lies at the top can only be written by who is not root if it is a folder, and there: "/" cannot be hidden.
		p := path.Clean(o.Path)
		if _, other := wanted[p]; !other && path.IsAbs(p) && path.Dir(p) == "/" && p != "/" && !inputs[p] {
			wanted[p] = want{output: true}
		}
	}
	return wanted
}

// authors says whether a mount of the author has a folder, and may be written to.
func authors(c *corev1.Container, folder string) (writable, mounted bool) {
	best := -1
	for _, m := range c.VolumeMounts {
		at := path.Clean(m.MountPath)
		if within(folder, at) && len(at) > best {
			best, writable, mounted = len(at), !m.ReadOnly, true
		}
	}
	return writable, mounted
}

func readOnly(c *corev1.Container) bool {
	sc := c.SecurityContext
	return sc != nil && sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem
}

// hides says whether an emptyDir at a folder would hide what the container needs: the system, a home, where it works, or
// something that its command line names and that is neither input nor output.
func (b *builder) hides(c *corev1.Container, folder string, task *spec.Spec) bool {
	if slices.Contains(usedFolders(), folder) || path.Dir(folder) == "/home" || path.Dir(folder) == "/var" {
		return true
	}
	if slices.ContainsFunc(systemFolders(), func(system string) bool { return within(folder, system) }) {
		return true
	}
	for _, dir := range []string{c.WorkingDir, b.facts[c.Name].WorkingDir} {
		if dir != "" && dir != "/" && within(path.Clean(dir), folder) {
			return true
		}
	}
	exchanged := b.exchanged(task)
	for _, word := range append(slices.Clone(c.Command), c.Args...) {
		if !path.IsAbs(word) {
			continue
		}
		word = path.Clean(word)
		if within(word, folder) && !slices.ContainsFunc(exchanged, func(p string) bool { return within(word, p) || within(p, word) }) {
			return true
		}
	}
	return false
}

// exchanged are the paths of all inputs and outputs.
func (b *builder) exchanged(task *spec.Spec) []string {
	var out []string
	add := func(p string) {
		if path.IsAbs(p) {
			out = append(out, path.Clean(p))
		}
	}
	add(task.ExecutorOutput)
	for _, o := range b.cmd.Outputs.Parameters {
		add(o.Path)
	}
	for _, o := range b.cmd.Outputs.Artifacts {
		add(o.Path)
		add(o.KeyFrom)
		add(o.MetadataFrom)
	}
	for _, in := range task.Inputs {
		add(in.Path)
	}
	return out
}

// mountFolders mounts an emptyDir at each folder, and gives the mounts. suffix tells containers' /tmp apart.
func (b *builder) mountFolders(c *corev1.Container, folders []string) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for i, folder := range folders {
		name := fmt.Sprintf("%s%d", folderVolume, i)
		if folder == "/tmp" {
			name = tempVolume
		}
		if c.Name != b.main {
			name = strings.TrimSuffix(name, "-") + "-" + c.Name
		}
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: folder})
		b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, emptyDir(name))
	}
	c.VolumeMounts = append(c.VolumeMounts, mounts...)
	return mounts
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}
