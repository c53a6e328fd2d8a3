from pathlib import Path

PROJECT_ROOT = Path(__file__).parent.parent
FIXTURES_ROOT = PROJECT_ROOT / "fixtures"
