"""What a release is worth and what it gives away: measures, attacks, audits, comparisons, policies, signatures."""
