"""What the commands do, without their options."""
