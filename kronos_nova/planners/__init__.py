"""Planners, the components that choose moves. Each planner is installed as an entry point of the
group ``kronos_nova.planners``.

The modules of planners use these words:

combined imbalance : the sum of the imbalances of all policies, each times the weight of the policy
gain : the amount by which a move lowers the combined imbalance
price : the least gain for which a move is made. Some planners lower another quantity than the
    combined imbalance. Their gains and prices are amounts of this quantity
penalty : the amount that a violated soft server group or preference of an operator adds to the
    combined imbalance, when plans are compared
search : a loop that rates candidate moves and makes the best moves on a copy of the state
candidate move : a pair of an instance and a host that a search rates
swap : two moves that exchange an instance of one host for an instance of another host
assignment : a host for each instance
end state : the assignment after all moves of a plan
possible order : an order of moves in which every rule holds after each move
stage : a group of moves in an integer program; a move can use the room that an earlier stage frees
needless move : a move without which the plan is as good
"""
