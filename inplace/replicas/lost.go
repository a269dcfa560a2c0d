package replicas

func (s *Set) Lost() int {
	return s.count(func(m *Member) bool { return m.Lost })
}
