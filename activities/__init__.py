"""What workflows ask of the world. One port, one class; each is safe to repeat."""
