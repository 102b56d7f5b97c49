package argoexpr

import (
	"fmt"
	"reflect"

	"github.com/Masterminds/sprig/v3"
)

// sprigFunctions are the functions behind "sprig." but those of the maps below.
var sprigFunctions = sprig.GenericFuncMap()

const (
	ofEnvironment = "is not available: it would read this machine, not the workflow"
	ofNetwork     = "is not available: it would ask the network"
	ofRandom      = "is not available: keys and salts must not come from an expression, which is recorded; make them in a task"
)

// refusedSprig says of some functions why they are not available.
var refusedSprig = map[string]string{
	"env": ofEnvironment, "expandenv": ofEnvironment, "getHostByName": ofNetwork,
	"bcrypt": ofRandom, "htpasswd": ofRandom, "encryptAES": ofRandom, "genPrivateKey": ofRandom, "genCA": ofRandom,
	"genCAWithKey": ofRandom, "genSelfSignedCert": ofRandom, "genSelfSignedCertWithKey": ofRandom,
	"genSignedCert": ofRandom, "genSignedCertWithKey": ofRandom,
}

// mutatingSprig change their first argument, which belongs to someone else: they get a copy.
var mutatingSprig = map[string]bool{
	"set": true, "unset": true, "merge": true, "mustMerge": true, "mergeOverwrite": true, "mustMergeOverwrite": true,
}

// slowSprig cost time out of proportion to their arguments, in steps.
var slowSprig = map[string]int{"derivePassword": maxSteps / 4, "buildCustomCert": maxSteps / 100}

func hasSprig(name string) bool {
	if _, ok := ownSprig[name]; ok {
		return true
	}
	_, ok := sprigFunctions[name]
	return ok
}

// sprig calls a function of sprig's.
func (ev *evaluation) sprig(name string, args []any) (any, error) {
	if cost := slowSprig[name]; cost > 0 {
		if err := ev.step(cost); err != nil {
			return nil, err
		}
	}
	if f, ok := ownSprig[name]; ok {
		return reflectCall(reflect.ValueOf(f(ev)), args)
	}
	if mutatingSprig[name] {
		copied := make([]any, len(args))
		for i, a := range args {
			copied[i] = deepCopy(a)
		}
		args = copied
	}
	f, ok := sprigFunctions[name]
	if !ok {
		return nil, fmt.Errorf("sprig has no such function")
	}
	return reflectCall(reflect.ValueOf(f), args)
}

func deepCopy(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = deepCopy(e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = deepCopy(e)
		}
		return out
	}
	return v
}
