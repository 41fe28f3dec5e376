"""Who must notice a planted fault. Each finder looks with the fault and without it.

command       a command of a user, in the folder of a scene: its exit code and a line of its output
rule          a rule of `verify`: it finds the defect that it is for, and no other rule does
case_checks   the checks of a case of the matrix, asked of a loader or saver with the fault
cell          a `matrix run` whose worker has the fault: one cell is lost, the others are as ever
writer        a writer on a full disk, or one that is killed: the old files stay, or the new ones
"""
