"""Who answers, and how: claims, answers, hands, deputies, rescues."""
