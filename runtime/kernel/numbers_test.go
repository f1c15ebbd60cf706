package kernel

import "testing"

func TestDistances(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"kernel a lanes 8 {\n}\n", "kernel a lanes 8 {\n}\n"},
		{"%1:f32 = x\n%2:f32, %5:f32 = add %1, %1\nstore %5, %2\n", "%-1:f32 = x\n%-1:f32, %-3:f32 = add %4, %4\nstore %0, %3\n"},
		{"%12:f32 = x\nfor %3:index = %12 to %12 {\n", "%-12:f32 = x\nfor %9:index = %-9 to %-9 {\n"},
	} {
		got := Distances(c.text)
		if got != c.want || numbers(got) != c.text {
			t.Errorf("%q becomes %q, want %q, and that %q", c.text, got, c.want, numbers(got))
		}
	}
}
