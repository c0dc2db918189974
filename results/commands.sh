#!/bin/sh
# Repeats the runs behind the tables; each line is independent of the others.

# karate: 2026-11-16, 4.5 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 71a087e043bb, first seed 0,
# cpu, torch_scatter, data aa783dc5c8e2, folds ab690046279b, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=karate

# clique_abs: 2026-11-16, 53 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 1af2b4f010e9, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_abs

# subgraph_squared: 2026-11-16, 17 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 9bb21cd0c02a, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_squared

# clique_squared: 2026-11-16, 1:33 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings f57fe9486b85, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_squared

# subgraph_gnn: 2026-11-16, 1:55 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 50d342303d26, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_gnn

# clique_gnn: 2026-11-16, 4:09 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 6b1bb6c3cc4c, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_gnn

# subgraph_control: 2026-11-16, 8.7 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 5b2ea24fb246, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_control

# clique_control: 2026-11-16, 21 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 22d03a5701b9, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_control

# mutag_gin: 2026-11-16, 1:41 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 07a57d02b276, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_gin

# mutag_gnn: 2026-11-16, 12:09 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 6e9fc01525ac, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_gnn

# mutag_single: 2026-11-16, 1:37 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 17ca2f2653a1, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_single

# mutag_single_control: 2026-11-16, 59 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 876bef52f2aa, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_single_control
