package pod

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

var testRun = engine.Run{Name: "wf", UID: "u", Namespace: "ns"}

// task is a script that has a command.
func task(changes ...func(*engine.StartTask)) engine.StartTask {
	cmd := engine.StartTask{
		Path: "wf.a", Pod: "wf-a-1", Template: &program.Template{},
		Body: program.Body{Kind: program.Script, Script: "x", Containers: []program.Container{{Name: "main", Image: "i", Command: []string{"sh"}}}},
	}
	for _, change := range changes {
		change(&cmd)
	}
	return cmd
}

func mainOf(o Objects) *corev1.Container {
	return &o.Pod.Spec.Containers[slices.IndexFunc(o.Pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "main" })]
}

// told gives what a container is told to do.
func told(t interface{ Fatalf(string, ...any) }, o Objects, c *corev1.Container) spec.Pod {
	var out spec.Pod
	for _, v := range c.Env {
		text := v.Value
		switch v.Name {
		case spec.PodEnv:
		case spec.PodFileEnv:
			text = o.Config.Data[strings.TrimPrefix(v.Value, specFolder+"/")]
		default:
			continue
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return out
}

// Whatever a script is, the executor gets it as it is: the kubelet finds nothing in it to put in.
func TestScriptsArriveAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.StringMatching(`([$()a-zA-Z{}"'\\&<>\n]|\$\(HOME\)|\$\$|é|[^\x00]){0,40}`).Draw(t, "source")
		source = strings.ToValidUTF8(source, "?")
		objects, err := Build(context.Background(), testConfig(), testRun, task(func(c *engine.StartTask) { c.Body.Script = source }), nil)
		if err != nil {
			t.Fatal(err)
		}
		main := mainOf(objects)
		for _, v := range main.Env {
			if v.Name == spec.PodEnv && strings.Contains(v.Value, "$") {
				t.Fatalf("the kubelet looks into %s", v.Value)
			}
		}
		if got := *told(t, objects, main).Task.Inputs[0].Data; got != source {
			t.Fatalf("%q, want %q", got, source)
		}
	})
}

func TestLongSpecificationsAreFiles(t *testing.T) {
	long := strings.Repeat("$x\n", maxVariable/3)
	cmd := task(func(c *engine.StartTask) { c.Body.Script = long })
	objects, err := Build(t.Context(), testConfig(), testRun, cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if objects.Config == nil || objects.Config.Name != objects.Pod.Name || objects.Config.Namespace != "ns" || len(objects.Config.OwnerReferences) != 1 {
		t.Fatalf("%+v", objects.Config)
	}
	if got := *told(t, objects, mainOf(objects)).Task.Inputs[0].Data; got != long {
		t.Errorf("%d bytes arrive of %d", len(got), len(long))
	}
	for _, v := range mainOf(objects).Env {
		if len(v.Value) > maxVariable {
			t.Errorf("%s has %d bytes", v.Name, len(v.Value))
		}
	}
	checkPod(t, objects.Pod)
	cmd.Body.Script = strings.Repeat("x", maxConfig)
	if _, err := Build(t.Context(), testConfig(), testRun, cmd, nil); err == nil || !strings.Contains(err.Error(), "artifact") {
		t.Error(err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for want, change := range map[string]func(*engine.StartTask){
		`a task of kind "http" is no pod`: func(c *engine.StartTask) { c.Body.Kind = program.HTTP },
		"the task has no container":       func(c *engine.StartTask) { c.Body.Containers = nil },
		"container main names no image":   func(c *engine.StartTask) { c.Body.Containers[0].Image = "" },
		"container main mounts a volume at /sluice/x, where the executor works": func(c *engine.StartTask) {
			c.Body.Containers[0].Mounts = []program.Mount{{Volume: "v", Path: "/sluice/x/"}}
		},
		"a sidecar has the name of the task's own container main": func(c *engine.StartTask) {
			c.Body.Pod = program.JSON(`{"containers":[{"name":"main","image":"i"}]}`)
		},
		"a patch removes the task's container main": func(c *engine.StartTask) {
			c.Body.Patch = `{"containers":[{"name":"main","$patch":"delete"},{"name":"x","image":"i"}]}`
		},
		"podSpecPatch: it does not fit a pod's spec": func(c *engine.StartTask) { c.Body.Patch = "containers: 5" },
		"podSpecPatch: yaml":                         func(c *engine.StartTask) { c.Body.Patch = "a: [" },
		"container main: retries":                    func(c *engine.StartTask) { c.Body.Containers[0].Retries = "many" },
		"no task endpoint": func(c *engine.StartTask) {
			c.Inputs.Artifacts = map[string][]program.Artifact{"a": {{Store: program.JSON(`{"s3":{"key":"k"}}`)}}}
			c.ArtifactPaths = map[string][]string{"a": {"/tmp/a"}}
		},
	} {
		cfg := testConfig()
		cfg.Endpoint = ""
		_, err := Build(t.Context(), cfg, testRun, task(change), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// registry has one image, and counts.
type registry struct {
	image Image
	err   error
	asked []string
}

func (r *registry) Image(_ context.Context, namespace string, secrets []string, account, ref string) (Image, error) {
	r.asked = append(r.asked, strings.Join(append([]string{namespace, account, ref}, secrets...), " "))
	return r.image, r.err
}

func TestImages(t *testing.T) {
	user := func(id int64) *int64 { return &id }
	broken := errors.New("connection refused")
	for name, test := range map[string]struct {
		image   Image
		err     error
		change  func(*program.Container)
		command []string
		user    *int64
		asked   int
		failure string
	}{
		"its own entrypoint and command": {image: Image{Entrypoint: []string{"/e"}, Cmd: []string{"c"}}, command: []string{"/e", "c"}, user: user(8737), asked: 1},
		"arguments stand for its command": {
			image: Image{Entrypoint: []string{"/e"}, Cmd: []string{"c"}}, change: func(c *program.Container) { c.Args = []string{"a"} },
			command: []string{"/e", "a"}, user: user(8737), asked: 1,
		},
		"no entrypoint":         {image: Image{Cmd: []string{"c", "d"}}, command: []string{"c", "d"}, user: user(8737), asked: 1},
		"nothing":               {failure: "runs nothing by itself", asked: 1},
		"a user by number":      {image: Image{Cmd: []string{"c"}, User: "1000:1"}, command: []string{"c"}, asked: 1},
		"a user by name":        {image: Image{Cmd: []string{"c"}, User: "me"}, command: []string{"c"}, user: user(8737), asked: 1},
		"root by number":        {image: Image{Cmd: []string{"c"}, User: "0"}, command: []string{"c"}, user: user(8737), asked: 1},
		"a command of its own":  {image: Image{User: "7"}, change: func(c *program.Container) { c.Command = []string{"x"} }, command: []string{"x"}, asked: 1},
		"cannot be asked":       {err: broken, failure: "connection refused; give the container a command", asked: 1},
		"need not be asked for": {err: broken, change: func(c *program.Container) { c.Command = []string{"x"} }, command: []string{"x"}, user: user(8737), asked: 1},
		"the template says all": {
			err: broken, command: []string{"x"}, user: user(5),
			change: func(c *program.Container) {
				c.Command, c.Raw = []string{"x"}, program.JSON(`{"securityContext":{"runAsUser":5}}`)
			},
		},
		"the table knows": {change: func(c *program.Container) { c.Image = "docker.io/argoproj/argosay:v2" }, command: []string{"/argosay"}, user: user(8737)},
	} {
		t.Run(name, func(t *testing.T) {
			images := &registry{image: test.image, err: test.err}
			cmd := task(func(c *engine.StartTask) {
				c.Body.Kind, c.Body.Containers[0].Command = program.Containers, nil
				if test.change != nil {
					test.change(&c.Body.Containers[0])
				}
				c.RunPod = program.JSON(`{"serviceAccountName":"sa","imagePullSecrets":[{"name":"s"}]}`)
			})
			objects, err := Build(t.Context(), testConfig(), testRun, cmd, images)
			if len(images.asked) != test.asked || test.asked == 1 && images.asked[0] != "ns sa i s" {
				t.Errorf("asked %q", images.asked)
			}
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Errorf("%v, want %q", err, test.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			main := mainOf(objects)
			if diff := cmp.Diff(test.command, main.Args); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.user, main.SecurityContext.RunAsUser); diff != "" {
				t.Error(diff)
			}
			home := slices.ContainsFunc(main.Env, func(v corev1.EnvVar) bool { return v.Name == "HOME" })
			if ours := test.user != nil && *test.user == 8737; home != ours {
				t.Errorf("HOME is set: %v", home)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	for text, same := range map[string]bool{"wf": true, "a.b_c-1": true, "-a-": false, "--": false, "a/b": false, long: false} {
		got := LabelValue(text)
		if problems := validation.IsValidLabelValue(got); len(problems) > 0 || (got == text) != same {
			t.Errorf("%s: %s %v", text, got, problems)
		}
	}
	if LabelValue(long) == LabelValue(long+"a") {
		t.Error("two long names are one label")
	}
	if got := Name(engine.StartTask{Pod: "Wf_a-Train.1"}); got != "wf-a-train.1" {
		t.Error(got)
	}
}
