[(block) (array) (block_comment)] @fold
