"""What follows with certainty from certain statements."""
