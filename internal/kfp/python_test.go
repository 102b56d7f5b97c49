package kfp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bootstrap = "\nif ! [ -x \"$(command -v pip)\" ]; then\n    python3 -m ensurepip || python3 -m ensurepip --user || apt-get install python3-pip\nfi\n\nPIP_DISABLE_PIP_VERSION_CHECK=1 "

func TestPythonEnvironment(t *testing.T) {
	const kfp = `python3 -m pip install --quiet --no-warn-script-location 'kfp==2.14.3' '--no-deps' 'typing-extensions>=3.7.4,<5; python_version<"3.9"'`
	kfpWords := []string{"kfp==2.14.3", "--no-deps", `typing-extensions>=3.7.4,<5; python_version<"3.9"`}
	for _, c := range []struct {
		name, script string
		want         []string
	}{
		{"kfp alone", bootstrap + kfp + " && \"$0\" \"$@\"\n", kfpWords},
		{"packages first", bootstrap + "python3 -m pip install --quiet --no-warn-script-location 'yapf' 'pandas==2.2.0'  &&  " + kfp + " && \"$0\" \"$@\"\n",
			append([]string{"yapf", "pandas==2.2.0", "&&"}, kfpWords...)},
		{"an index", bootstrap + "python3 -m pip install --quiet --no-warn-script-location --index-url https://a/simple --extra-index-url https://b --trusted-host a 'x'" + " && \"$0\" \"$@\"\n",
			[]string{"--index-url", "https://a/simple", "--extra-index-url", "https://b", "--trusted-host", "a", "x"}},
		{"a virtual environment", bootstrap + "python3 -m pip install --quiet --no-warn-script-location 'yapf'  &&  \nexport PIP_DISABLE_PIP_VERSION_CHECK=1\ntmp=$(mktemp -d)\npython3 -m venv \"$tmp/venv\" --system-site-packages\n. \"$tmp/venv/bin/activate\"\n " + kfp + " && \"$0\" \"$@\"\n",
			append([]string{"yapf", "&&"}, kfpWords...)},
		{"double quotes", bootstrap + `python3 -m pip install "x; python_version<'3.9'" y\ z && "$0" "$@"`, []string{"x; python_version<'3.9'", "y z"}},
		{"a second try", `(PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --no-warn-script-location 'xgboost==1.1.1' || PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --no-warn-script-location 'xgboost==1.1.1' --user) && "$0" "$@"`,
			[]string{"xgboost==1.1.1"}},
		{"a variable", `python3 -m pip install "$PKG" && "$0" "$@"`, nil},
		{"an open quote", `python3 -m pip install 'x && "$0" "$@"`, nil},
		{"no rest", `python3 -m pip install x`, nil},
		{"nothing installed", `echo hello && "$0" "$@"`, nil},
	} {
		requirements, rest := pythonEnvironment([]string{"sh", "-c", c.script, "sh", "-ec", "program", "source"})
		if diff := cmp.Diff(c.want, requirements); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
		wantRest := []string{"sh", "-ec", "program", "source"}
		if c.want == nil {
			wantRest = nil
		}
		if diff := cmp.Diff(wantRest, rest); diff != "" {
			t.Errorf("%s: rest: -want +got:\n%s", c.name, diff)
		}
	}
	for _, command := range [][]string{nil, {"python3", "-m", "kfp.dsl.executor_main"}, {"sh", "-c", bootstrap + kfp + ` && "$0" "$@"`}} {
		if r, _ := pythonEnvironment(command); r != nil {
			t.Errorf("%v installs %v", command, r)
		}
	}
}
