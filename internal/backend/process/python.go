package process

type pythonEnv struct {
	bin string
	env []string
}

func (a *attempt) python() (*pythonEnv, error) { return nil, nil }

func (b *Backend) userBase() string { return "" }
