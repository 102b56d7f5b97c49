package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// userOf is the user that a template names for a container, by number; nil where it names none.
func userOf(s *corev1.PodSpec, c *corev1.Container) *int64 {
	if sc := c.SecurityContext; sc != nil && sc.RunAsUser != nil {
		return sc.RunAsUser
	}
	if sc := s.SecurityContext; sc != nil {
		return sc.RunAsUser
	}
	return nil
}

// asksForRoot says whether the template asks that a container may be root: by number, or by letting its image decide, or
// because it is privileged.
func asksForRoot(s *corev1.PodSpec, c *corev1.Container) bool {
	if user := userOf(s, c); user != nil {
		return *user == 0
	}
	var nonRoot *bool
	if s.SecurityContext != nil {
		nonRoot = s.SecurityContext.RunAsNonRoot
	}
	if sc := c.SecurityContext; sc != nil {
		if sc.RunAsNonRoot != nil {
			nonRoot = sc.RunAsNonRoot
		}
		if sc.Privileged != nil && *sc.Privileged {
			return true
		}
	}
	return nonRoot != nil && !*nonRoot
}

// policy fills in what the author did not say.
func (b *builder) policy() error {
	harden(&b.pod.Spec, b.cfg.User, b.facts)
	return nil
}

// harden fills in what the Pod Security Standard "restricted" demands, where a pod does not say something else: whoever
// wants more has to ask for it in the template. facts are what is known of the containers' images, by container.
func harden(s *corev1.PodSpec, user int64, facts map[string]Image) {
	// In a container of its own each decides by what the author wrote for the pod.
	written := corev1.PodSpec{SecurityContext: s.SecurityContext.DeepCopy()}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			image, known := facts[list[i].Name]
			restrict(&written, &list[i], user, known && image.plainUser())
		}
	}
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	sc := s.SecurityContext
	if sc.SeccompProfile == nil {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	root := sc.RunAsUser != nil && *sc.RunAsUser == 0 || sc.RunAsNonRoot != nil && !*sc.RunAsNonRoot
	if sc.FSGroup == nil && !root {
		policy := corev1.FSGroupChangeOnRootMismatch
		sc.FSGroup = &user
		if sc.FSGroupChangePolicy == nil {
			sc.FSGroupChangePolicy = &policy
		}
	}
	if s.AutomountServiceAccountToken == nil {
		no := false
		s.AutomountServiceAccountToken = &no
	}
}

// restrict fills in what a container's author did not say. pod has what the author wrote for the pod; ownUser says that
// the image names a user of its own.
func restrict(pod *corev1.PodSpec, c *corev1.Container, user int64, ownUser bool) {
	root := asksForRoot(pod, c)
	named := userOf(pod, c) != nil
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	sc := c.SecurityContext
	privileged := sc.Privileged != nil && *sc.Privileged
	no, yes := false, true
	if sc.AllowPrivilegeEscalation == nil && !privileged && !adds(sc.Capabilities, "SYS_ADMIN", "CAP_SYS_ADMIN") {
		sc.AllowPrivilegeEscalation = &no
	}
	if root {
		return // with the capabilities that root has everywhere: without them it is hardly worth having
	}
	if sc.RunAsNonRoot == nil && (pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil) {
		sc.RunAsNonRoot = &yes
	}
	if !named && !ownUser {
		sc.RunAsUser = &user
	}
	if privileged {
		return
	}
	if sc.Capabilities == nil {
		sc.Capabilities = &corev1.Capabilities{}
	}
	if !slices.Contains(sc.Capabilities.Drop, "ALL") {
		sc.Capabilities.Drop = append(slices.Clip(sc.Capabilities.Drop), "ALL")
	}
}

func adds(c *corev1.Capabilities, names ...corev1.Capability) bool {
	return c != nil && slices.ContainsFunc(c.Add, func(n corev1.Capability) bool { return slices.Contains(names, n) })
}

// locked is the security of the containers that are added to a pod: they need nothing.
func (b *builder) locked() *corev1.SecurityContext {
	no, yes, user := false, true, b.cfg.User
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes, RunAsUser: &user,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
