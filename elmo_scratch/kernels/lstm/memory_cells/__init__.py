"""What one step does to the memory of an LSTM, number by number."""

from elmo_scratch.kernels.lstm.memory_cells.choice import memory_cells_for as memory_cells_for
from elmo_scratch.kernels.lstm.memory_cells.memory_cells import CellOutput as CellOutput
from elmo_scratch.kernels.lstm.memory_cells.memory_cells import MemoryCells as MemoryCells

__all__ = ["CellOutput", "MemoryCells", "memory_cells_for"]
