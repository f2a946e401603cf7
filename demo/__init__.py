"""The demonstration: a real job on real input is drained, replaced and drained again, and every record is counted."""
