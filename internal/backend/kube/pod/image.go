package pod

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// commands finds what the containers run that name no command, and what is known of the others' images.
func (b *builder) commands() error {
	for i := range b.pod.Spec.Containers {
		c := &b.pod.Spec.Containers[i]
		if c.Image == "" {
			return fmt.Errorf("container %s names no image", c.Name)
		}
		if len(c.Command) > 0 {
			b.lookUser(c)
			continue
		}
		image, err := b.image(c.Image)
		if err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
		b.facts[c.Name] = image
		c.Command = image.Entrypoint
		if len(c.Args) == 0 {
			c.Args = image.Cmd
		}
		if len(c.Command)+len(c.Args) == 0 {
			return fmt.Errorf("container %s: image %s runs nothing by itself: give the container a command", c.Name, c.Image)
		}
	}
	for i := range b.pod.Spec.InitContainers {
		b.lookUser(&b.pod.Spec.InitContainers[i])
	}
	return nil
}

// lookUser finds whom an image runs as where nothing else says so. Where the image cannot be asked it gets the
// configured user, as one does that says nothing.
func (b *builder) lookUser(c *corev1.Container) {
	if _, known := b.cfg.known(c.Image); !known && (b.images == nil || userOf(&b.pod.Spec, c) != nil || asksForRoot(&b.pod.Spec, c)) {
		return
	}
	if image, err := b.image(c.Image); err == nil {
		b.facts[c.Name] = image
	}
}

// image says what an image runs: as the table has it, else as its registry does.
func (b *builder) image(ref string) (Image, error) {
	if image, known := b.cfg.known(ref); known {
		return image, nil
	}
	const help = `give the container a command, or name what the image runs under "images" in the controller's configuration`
	if b.images == nil {
		return Image{}, fmt.Errorf("what image %s runs by itself is not known: %s", ref, help)
	}
	var secrets []string
	for _, s := range b.pod.Spec.ImagePullSecrets {
		secrets = append(secrets, s.Name)
	}
	image, err := b.images.Image(b.ctx, b.run.Namespace, secrets, b.pod.Spec.ServiceAccountName, ref)
	if err != nil {
		if ctxErr := b.ctx.Err(); ctxErr != nil {
			return Image{}, errors.Join(ctxErr, err)
		}
		return Image{}, fmt.Errorf("what image %s runs by itself could not be found out: %w; %s", ref, err, help)
	}
	return image, nil
}

// known looks an image up in the table: by its name as it is written, else by its full name.
func (c Config) known(ref string) (Image, bool) {
	if image, ok := c.ImageTable[ref]; ok {
		return image, true
	}
	full := fullName(ref)
	for _, name := range sortedKeys(c.ImageTable) {
		if fullName(name) == full {
			return c.ImageTable[name], true
		}
	}
	return Image{}, false
}

// fullName completes an image's name as Kubernetes does.
func fullName(ref string) string {
	first, rest, path := strings.Cut(ref, "/")
	switch {
	case !path:
		ref = "docker.io/library/" + ref
	case !strings.ContainsAny(first, ".:") && first != "localhost" && rest != "":
		ref = "docker.io/" + ref
	}
	if !strings.Contains(ref, "@") && strings.LastIndexByte(ref, ':') <= strings.LastIndexByte(ref, '/') {
		ref += ":latest"
	}
	return ref
}

// plainUser says whether an image names a user by number that is not root: only such a one can Kubernetes check.
func (i Image) plainUser() bool {
	user, _, _ := strings.Cut(i.User, ":")
	id, err := strconv.ParseInt(user, 10, 64)
	return err == nil && id > 0
}
