package deploy

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, data []byte) map[string]object {
	t.Helper()
	found := map[string]object{}
	for doc := range strings.SplitSeq("\n"+string(data), "\n---\n") {
		var x object
		if err := yaml.Unmarshal([]byte(doc), &x); err != nil {
			t.Fatal(err)
		}
		if x == nil {
			continue
		}
		key := x.kind() + "/" + text(at(x, "metadata")["namespace"]) + "/" + x.name()
		if found[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		found[key] = x
	}
	return found
}

func manifests(t *testing.T, o Options) map[string]object {
	t.Helper()
	o.Image, o.ExecutorImage = "sluice:dev", "sluice-executor:dev"
	data, err := Manifests(o)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, data)
}

// What sluice install prints is what kustomize makes of the same folders.
func TestAsKustomize(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl to compare with")
	}
	for folder, o := range map[string]Options{"cluster": {}, "namespaced": {Namespaced: true}} {
		t.Run(folder, func(t *testing.T) {
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), kubectl, "kustomize", folder)
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			if d := cmp.Diff(parse(t, out), manifests(t, o)); d != "" {
				t.Errorf("(-kustomize +install):\n%s", d)
			}
		})
	}
}

func TestVariants(t *testing.T) {
	keys := func(o Options) []string {
		var found []string
		for key := range manifests(t, o) {
			found = append(found, key)
		}
		return found
	}
	for name, c := range map[string]struct {
		options  Options
		has, not []string
	}{
		"all namespaces": {
			Options{},
			[]string{"Namespace//sluice", "ClusterRoleBinding//sluice-controller", "Deployment/sluice/sluice-controller", "CustomResourceDefinition//workflows.argoproj.io"},
			[]string{"RoleBinding/sluice/sluice-controller", "ClusterRole//sluice-controller-impersonation"},
		},
		"one namespace": {
			Options{Namespaced: true, Namespace: "ml"},
			[]string{"RoleBinding/ml/sluice-controller", "Deployment/ml/sluice-controller", "ClusterRoleBinding//sluice-controller-tokens-ml"},
			[]string{"Namespace//ml", "ClusterRoleBinding//sluice-controller", "ClusterRole//sluice-controller-cluster"},
		},
		"resource templates": {
			Options{Impersonation: true, NoCRDs: true},
			[]string{"ClusterRoleBinding//sluice-controller-impersonation"},
			[]string{"RoleBinding/sluice/sluice-controller-impersonation", "CustomResourceDefinition//workflows.argoproj.io"},
		},
		"resource templates of one namespace": {
			Options{Impersonation: true, Namespaced: true, Namespace: "ml"},
			[]string{"RoleBinding/ml/sluice-controller-impersonation"},
			[]string{"ClusterRoleBinding//sluice-controller-impersonation-ml", "ClusterRoleBinding//sluice-controller-impersonation"},
		},
		"an instance": {
			Options{InstanceID: "gpu"},
			[]string{"Namespace//sluice-gpu", "Deployment/sluice-gpu/sluice-controller", "ClusterRoleBinding//sluice-controller-sluice-gpu", "ClusterRole//sluice-controller"},
			[]string{"ClusterRoleBinding//sluice-controller", "Namespace//sluice"},
		},
		"an instance of one namespace": {
			Options{InstanceID: "gpu", Namespaced: true, Namespace: "ml"},
			[]string{"Deployment/ml/sluice-controller", "ClusterRoleBinding//sluice-controller-tokens-ml"},
			[]string{"ClusterRoleBinding//sluice-controller", "Namespace//ml"},
		},
		"definitions": {
			Options{CRDsOnly: true},
			[]string{"CustomResourceDefinition//runjournals.sluice.dev", "CustomResourceDefinition//clustertaskhooks.sluice.dev"},
			[]string{"Namespace//sluice", "Deployment/sluice/sluice-controller"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := keys(c.options)
			for _, key := range c.has {
				if !slices.Contains(got, key) {
					t.Errorf("%s is missing in %v", key, got)
				}
			}
			for _, key := range c.not {
				if slices.Contains(got, key) {
					t.Errorf("%s is there", key)
				}
			}
		})
	}
}

// Nothing is left of the namespace that the files say.
func TestOtherNamespace(t *testing.T) {
	for _, namespaced := range []bool{false, true} {
		for key, x := range manifests(t, Options{Namespaced: namespaced, Namespace: "ml", Impersonation: true}) {
			if namespace := at(x, "metadata")["namespace"]; namespace != nil && namespace != "ml" {
				t.Errorf("%s lies in %v", key, namespace)
			}
			if subjects, ok := x["subjects"].([]any); ok && fmt.Sprint(subjects) != "[map[kind:ServiceAccount name:sluice-controller namespace:ml]]" {
				t.Errorf("%s is for %v", key, subjects)
			}
		}
	}
}

// A controller of an instance ID takes the lease of that name, and only that.
func TestInstances(t *testing.T) {
	for id, lease := range map[string]string{"": "sluice-controller", "gpu": "sluice-controller-gpu"} {
		all := manifests(t, Options{InstanceID: id, Namespace: "x", NoCRDs: true})
		var names []any
		rules, _ := all["Role/x/sluice-controller"]["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			if named, ok := rule["resourceNames"].([]any); ok && fmt.Sprint(rule["resources"]) == "[leases]" {
				names = append(names, named...)
			}
		}
		if d := cmp.Diff([]any{lease}, names); d != "" || Lease(id) != lease {
			t.Errorf("ID %q: lease %s\n%s", id, Lease(id), d)
		}
		containers, _ := at(all["Deployment/x/sluice-controller"], "spec", "template", "spec")["containers"].([]any)
		if got := strings.Contains(fmt.Sprint(containers), "--instance-id=gpu"); got != (id != "") {
			t.Errorf("ID %q: %v", id, containers)
		}
	}
}

// The controller has no right to everything of anything, and none to act as somebody unless that was asked for.
func TestLeastPrivilege(t *testing.T) {
	for key, x := range manifests(t, Options{NoCRDs: true}) {
		rules, _ := x["rules"].([]any)
		for _, r := range rules {
			if said := fmt.Sprint(r); strings.ContainsRune(said, '*') || strings.Contains(said, "impersonate") || strings.Contains(said, "pods/exec") {
				t.Errorf("%s: %v", key, said)
			}
		}
	}
}

func TestPodIsRestricted(t *testing.T) {
	d := manifests(t, Options{})["Deployment/sluice/sluice-controller"]
	pod := at(d, "spec", "template", "spec")
	c := pod["containers"].([]any)[0].(map[string]any)
	for name, ok := range map[string]bool{
		"runAsNonRoot": at(pod, "securityContext")["runAsNonRoot"] == true,
		"seccomp":      at(pod, "securityContext", "seccompProfile")["type"] == "RuntimeDefault",
		"escalation":   at(c, "securityContext")["allowPrivilegeEscalation"] == false,
		"root":         at(c, "securityContext")["readOnlyRootFilesystem"] == true,
		"capabilities": fmt.Sprint(at(c, "securityContext", "capabilities")["drop"]) == "[ALL]",
		"requests":     len(at(c, "resources", "requests")) == 2,
		"probes":       c["livenessProbe"] != nil && c["readinessProbe"] != nil,
	} {
		if !ok {
			t.Errorf("%s is not as it should be: %v %v", name, pod["securityContext"], c)
		}
	}
}
