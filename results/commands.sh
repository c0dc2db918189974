#!/bin/sh
# Repeats the runs behind the tables; each line is independent of the others.

# karate: 2026-11-16, 4.5 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings b723e443c1d7, first seed 0,
# cpu, torch_scatter, data aa783dc5c8e2, folds ab690046279b, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=karate

# karate_control: 2026-11-16, 2.5 s of computing, lpgnn 0.1.0 at 767ef83e2113, settings 4558f766fd51, first seed 0,
# cpu, torch_scatter, data aa783dc5c8e2, folds ab690046279b, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=karate_control protocol.workers=1

# karate_oneshot: 2026-11-16, 3.0 s of computing, lpgnn 0.1.0 at 767ef83e2113, settings 42f201922e08, first seed 0,
# cpu, torch_scatter, data aa783dc5c8e2, folds ab690046279b, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=karate_oneshot protocol.workers=1

# subgraph_abs: 2026-11-16, 35 s of computing, lpgnn 0.1.0 at cd900f303a52, settings 72b54a2e428a, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_abs protocol.workers=1

# clique_abs: 2026-11-16, 53 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 83777673c758, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_abs

# subgraph_abs_eps001: 2026-11-16, 18 s of computing, lpgnn 0.1.0 at cd900f303a52, settings 7e956db0e78d, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_abs_eps001 protocol.workers=1

# clique_abs_eps001: 2026-11-16, 32 s of computing, lpgnn 0.1.0 at 03ab9f6f5ae8, settings 64f5dafef7f6, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_abs_eps001 protocol.workers=1

# subgraph_abs_eps01: 2026-11-16, 14 s of computing, lpgnn 0.1.0 at b99795651948, settings 423061097fbb, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_abs_eps01 protocol.workers=1

# clique_abs_eps01: 2026-11-16, 28 s of computing, lpgnn 0.1.0 at cd900f303a52, settings e119d216184c, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_abs_eps01 protocol.workers=1

# subgraph_lin: 2026-11-16, 17 s of computing, lpgnn 0.1.0 at 5f5025f106ab, settings 84a004709f56, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_lin protocol.workers=1

# clique_lin: 2026-11-16, 20 s of computing, lpgnn 0.1.0 at 5f5025f106ab, settings 02e4d46a7695, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_lin protocol.workers=1

# subgraph_lin_eps001: 2026-11-16, 16 s of computing, lpgnn 0.1.0 at 5f5025f106ab, settings 7bcc5470a37a, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_lin_eps001 protocol.workers=1

# clique_lin_eps001: 2026-11-16, 22 s of computing, lpgnn 0.1.0 at 5f5025f106ab, settings 55077ce69504, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_lin_eps001 protocol.workers=1

# subgraph_lin_eps01: 2026-11-16, 17 s of computing, lpgnn 0.1.0 at 5f5025f106ab, settings 793663b46ec0, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_lin_eps01 protocol.workers=1

# clique_lin_eps01: 2026-11-16, 18 s of computing, lpgnn 0.1.0 at 5f5025f106ab, settings 7d68ec81f1ec, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_lin_eps01 protocol.workers=1

# subgraph_squared: 2026-11-16, 17 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings e7e6c9a6ea93, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_squared

# clique_squared: 2026-11-16, 1:33 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings db233a1f77e6, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_squared

# subgraph_gnn: 2026-11-16, 1:55 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 72454f0be894, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_gnn

# clique_gnn: 2026-11-16, 4:09 of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 19471fd3d7b5, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_gnn

# subgraph_control: 2026-11-16, 8.7 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings b85a6a17d593, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_control

# clique_control: 2026-11-16, 21 s of computing, lpgnn 0.1.0 at 678f8375e4ea, settings 18e54958b061, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_control

# subgraph_oneshot: 2026-11-16, 4.2 s of computing, lpgnn 0.1.0 at b99795651948, settings 84e9c04f9eb8, first seed 0,
# cpu, torch_scatter, data 3edbc71fa01d, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=subgraph_oneshot protocol.workers=1

# clique_oneshot: 2026-11-16, 14 s of computing, lpgnn 0.1.0 at cd900f303a52, settings 321aa0a55a53, first seed 0,
# cpu, torch_scatter, data d3525d33684a, folds d2d5cef288fc, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=clique_oneshot protocol.workers=1

# imdb_b_sage: 2026-11-16, 4:18 of computing, lpgnn 0.1.0 at fa3dce602b55, settings a5bc3ff6f51f, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_sage protocol.workers=1

# imdb_m_sage: 2026-11-16, 7:55 of computing, lpgnn 0.1.0 at eac6ac8d2d11, settings b0c7d7daec85, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_sage protocol.workers=1

# mutag_sage: 2026-11-16, 2:44 of computing, lpgnn 0.1.0 at cd900f303a52, settings 992c568b325b, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_sage protocol.workers=1

# proteins_sage: 2026-11-16, 5:06 of computing, lpgnn 0.1.0 at 88b8ad3e2aa8, settings 9ce51551e899, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_sage protocol.workers=1

# ptc_sage: 2026-11-16, 3:56 of computing, lpgnn 0.1.0 at eac6ac8d2d11, settings fd82cea02209, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_sage protocol.workers=1

# nci1_sage: 2026-11-16, 10:26 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings 95332c72f40a, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_sage protocol.workers=1

# imdb_b_k5_gin: 2026-11-16, 2:40 of computing, lpgnn 0.1.0 at cd900f303a52, settings a8a0a176389c, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_gin protocol.workers=1

# imdb_m_gin: 2026-11-16, 2:30 of computing, lpgnn 0.1.0 at eac6ac8d2d11, settings b9d669478fff, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_gin protocol.workers=1

# mutag_gin: 2026-11-16, 1:02 of computing, lpgnn 0.1.0 at cd900f303a52, settings 3df986d9c234, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_gin protocol.workers=1

# proteins_gin: 2026-11-16, 3:04 of computing, lpgnn 0.1.0 at 88b8ad3e2aa8, settings 96c5a7e56e9c, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_gin protocol.workers=1

# ptc_gin: 2026-11-16, 1:53 of computing, lpgnn 0.1.0 at cd900f303a52, settings 64ab86e40ecf, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_gin protocol.workers=1

# nci1_gin: 2026-11-16, 5:32 of computing, lpgnn 0.1.0 at fa3dce602b55, settings c2955dcaa37b, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_gin protocol.workers=1

# imdb_b_gnn: 2026-11-16, 19:24 of computing, lpgnn 0.1.0 at 6be536617e7a, settings 9f129e889888, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_gnn protocol.workers=1

# imdb_m_gnn: 2026-11-16, 22:39 of computing, lpgnn 0.1.0 at 6be536617e7a, settings c9ecc45d9a80, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_gnn protocol.workers=1

# mutag_gnn: 2026-11-16, 2:47 of computing, lpgnn 0.1.0 at cd900f303a52, settings 2365f3b253a7, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_gnn protocol.workers=1

# proteins_gnn: 2026-11-16, 6:57 of computing, lpgnn 0.1.0 at 6be536617e7a, settings 348a09e3aef2, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_gnn protocol.workers=1

# ptc_gnn: 2026-11-16, 3:41 of computing, lpgnn 0.1.0 at 43f700682c0f, settings ed7bc29fd251, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_gnn protocol.workers=1

# nci1_gnn: 2026-11-16, 28:49 of computing, lpgnn 0.1.0 at 6be536617e7a, settings 76b8932b44b4, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_gnn protocol.workers=1

# imdb_b_k1_lp: 2026-11-16, 1:50 of computing, lpgnn 0.1.0 at 03ab9f6f5ae8, settings d80ccfea294e, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_lp protocol.workers=1

# imdb_m_single: 2026-11-16, 2:42 of computing, lpgnn 0.1.0 at cd900f303a52, settings 89608cedd658, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_single protocol.workers=1

# mutag_single: 2026-11-16, 1:07 of computing, lpgnn 0.1.0 at cd900f303a52, settings e392d5cf7bbd, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_single protocol.workers=1

# proteins_single: 2026-11-16, 2:00 of computing, lpgnn 0.1.0 at fa3dce602b55, settings 6c4193e86d4f, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_single protocol.workers=1

# ptc_single: 2026-11-16, 1:06 of computing, lpgnn 0.1.0 at cd900f303a52, settings d880590a4914, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_single protocol.workers=1

# nci1_single: 2026-11-16, 4:59 of computing, lpgnn 0.1.0 at fa3dce602b55, settings f00244b57c6b, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_single protocol.workers=1

# imdb_b_k5_lp: 2026-11-16, 7:26 of computing, lpgnn 0.1.0 at cd900f303a52, settings 9c69440a2cf2, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_lp protocol.workers=1

# imdb_m_multi: 2026-11-16, 5:40 of computing, lpgnn 0.1.0 at cd900f303a52, settings ccd18c05dd17, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_multi protocol.workers=1

# mutag_multi: 2026-11-16, 2:01 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings 8a5cf7ad9c23, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_multi protocol.workers=1

# proteins_multi: 2026-11-16, 4:32 of computing, lpgnn 0.1.0 at cd900f303a52, settings d95ac719aa7a, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_multi protocol.workers=1

# ptc_multi: 2026-11-16, 1:18 of computing, lpgnn 0.1.0 at b2a66ec41225, settings d48e8d4b1285, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_multi protocol.workers=1

# nci1_multi: 2026-11-16, 8:53 of computing, lpgnn 0.1.0 at 4c9dd0b67d93, settings 658a566ed622, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_multi protocol.workers=2

# imdb_b_k1_lp_control: 2026-11-16, 56 s of computing, lpgnn 0.1.0 at cd900f303a52, settings eb422dd8c67b, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_lp_control protocol.workers=1

# imdb_m_single_control: 2026-11-16, 1:48 of computing, lpgnn 0.1.0 at eac6ac8d2d11, settings 7e6f6fb4b7c4, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_single_control protocol.workers=1

# mutag_single_control: 2026-11-16, 38 s of computing, lpgnn 0.1.0 at cd900f303a52, settings 6e7fcc14f4ae, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_single_control protocol.workers=1

# proteins_single_control: 2026-11-16, 1:13 of computing, lpgnn 0.1.0 at fa3dce602b55, settings bb92d230449c, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_single_control protocol.workers=1

# ptc_single_control: 2026-11-16, 1:32 of computing, lpgnn 0.1.0 at cd900f303a52, settings bf2fb1b4ccad, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_single_control protocol.workers=1

# nci1_single_control: 2026-11-16, 3:16 of computing, lpgnn 0.1.0 at 88b8ad3e2aa8, settings 594b6f53bbe9, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_single_control protocol.workers=1

# imdb_b_k5_lp_control: 2026-11-16, 4:32 of computing, lpgnn 0.1.0 at fa3dce602b55, settings c5ae42b8370f, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_lp_control protocol.workers=1

# imdb_m_multi_control: 2026-11-16, 2:39 of computing, lpgnn 0.1.0 at fa3dce602b55, settings 7f5db1192eeb, first seed 0,
# cpu, torch_scatter, data 23f64365eb17, folds 32f82d1372ff, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_m_multi_control protocol.workers=1

# mutag_multi_control: 2026-11-16, 1:08 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings e17d59ad2c4c, first seed 0,
# cpu, torch_scatter, data 7a3bac3d0ff1, folds 724c51529117, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=mutag_multi_control protocol.workers=1

# proteins_multi_control: 2026-11-16, 2:09 of computing, lpgnn 0.1.0 at fa3dce602b55, settings afefc22e581f, first seed 0,
# cpu, torch_scatter, data 7ebb8e4dd2fb, folds e1bff7816ee4, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=proteins_multi_control protocol.workers=1

# ptc_multi_control: 2026-11-16, 44 s of computing, lpgnn 0.1.0 at b2a66ec41225, settings 139ece2eaf2c, first seed 0,
# cpu, torch_scatter, data cd51d40f27f4, folds 8c0ec0343383, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=ptc_multi_control protocol.workers=1

# nci1_multi_control: 2026-11-16, 6:05 of computing, lpgnn 0.1.0 at 4c9dd0b67d93, settings 116f2bb68599, first seed 0,
# cpu, torch_scatter, data 60d141a0e705, folds f8e2f4d15c14, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=nci1_multi_control protocol.workers=2

# csl_mlp: 2026-11-16, 5:02 of computing, lpgnn 0.1.0 at b99795651948, settings e90c79007e25, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_mlp protocol.workers=1

# csl_gcn: 2026-11-16, 13:42 of computing, lpgnn 0.1.0 at b99795651948, settings 80051a5803ca, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_gcn protocol.workers=1

# csl_sage: 2026-11-16, 23:17 of computing, lpgnn 0.1.0 at 4fddb197c3cc, settings 2bdb757ddea1, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_sage protocol.workers=1

# csl_gat: 2026-11-16, 32:47 of computing, lpgnn 0.1.0 at c18e6f3d49f3, settings cb432df541ae, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_gat protocol.workers=1

# csl_gin: 2026-11-16, 11:48 of computing, lpgnn 0.1.0 at 6be536617e7a, settings 854468d8b29d, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_gin protocol.workers=1

# csl_lp: 2026-11-16, 8:08 of computing, lpgnn 0.1.0 at cd900f303a52, settings 7c5bb7ea4bef, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_lp protocol.workers=1

# csl_lp_control: 2026-11-16, 5:43 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings 85c65dc42c8d, first seed 0,
# cpu, torch_scatter, data a24107debbd8, folds e0a53e770af1, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=csl_lp_control protocol.workers=1

# enzymes_mlp: 2026-11-16, 8:44 of computing, lpgnn 0.1.0 at fa3dce602b55, settings 6fa67fe18639, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_mlp protocol.workers=1

# enzymes_gcn: 2026-11-16, 17:03 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings 0cdedec90cd5, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_gcn protocol.workers=1

# enzymes_sage: 2026-11-16, 23:27 of computing, lpgnn 0.1.0 at 4fddb197c3cc, settings eac940beb12d, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_sage protocol.workers=1

# enzymes_gat: 2026-11-16, 41:40 of computing, lpgnn 0.1.0 at c18e6f3d49f3, settings e90df056956e, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_gat protocol.workers=1

# enzymes_gin: 2026-11-16, 10:12 of computing, lpgnn 0.1.0 at fa3dce602b55, settings bbeb57c8c4b4, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_gin protocol.workers=1

# enzymes_lp: 2026-11-16, 7:53 of computing, lpgnn 0.1.0 at cd900f303a52, settings 4679037251eb, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_lp protocol.workers=1

# enzymes_lp_control: 2026-11-16, 9:11 of computing, lpgnn 0.1.0 at 1fa45dccfe89, settings 32c00187f359, first seed 0,
# cpu, torch_scatter, data 0b4b29ed2ca1, folds a9208e72df96, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=enzymes_lp_control protocol.workers=1

# imdb_b_k1_gin: 2026-11-16, 18 s of computing, lpgnn 0.1.0 at cd900f303a52, settings 07267fa62ed5, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_gin protocol.workers=1

# imdb_b_k2_gin: 2026-11-16, 54 s of computing, lpgnn 0.1.0 at cd900f303a52, settings 8d317b0f604c, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_gin protocol.workers=1

# imdb_b_k3_gin: 2026-11-16, 1:13 of computing, lpgnn 0.1.0 at cd900f303a52, settings 684f81959521, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_gin protocol.workers=1

# imdb_b_k2_lp: 2026-11-16, 3:42 of computing, lpgnn 0.1.0 at cd900f303a52, settings a384ca2dcd2f, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_lp protocol.workers=1

# imdb_b_k3_lp: 2026-11-16, 5:06 of computing, lpgnn 0.1.0 at cd900f303a52, settings a28bc85bd79d, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_lp protocol.workers=1

# imdb_b_k2_lp_control: 2026-11-16, 1:47 of computing, lpgnn 0.1.0 at fa3dce602b55, settings d80a4096a606, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_lp_control protocol.workers=1

# imdb_b_k3_lp_control: 2026-11-16, 2:45 of computing, lpgnn 0.1.0 at fa3dce602b55, settings 3a579a0fc26b, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_lp_control protocol.workers=1

# imdb_b_k1_lp_gin: 2026-11-16, 35 s of computing, lpgnn 0.1.0 at b2a66ec41225, settings 1258cabd6eb2, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_lp_gin protocol.workers=1

# imdb_b_k2_lp_gin: 2026-11-16, 1:03 of computing, lpgnn 0.1.0 at b2a66ec41225, settings 12189cde92e4, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_lp_gin protocol.workers=1

# imdb_b_k3_lp_gin: 2026-11-16, 1:38 of computing, lpgnn 0.1.0 at b2a66ec41225, settings ba82f6760d13, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_lp_gin protocol.workers=1

# imdb_b_k5_lp_gin: 2026-11-16, 2:29 of computing, lpgnn 0.1.0 at b2a66ec41225, settings a59dda87cddd, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_lp_gin protocol.workers=1

# imdb_b_k1_lp_gcn: 2026-11-16, 56 s of computing, lpgnn 0.1.0 at fa3dce602b55, settings a3ae1e5fd4d8, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_lp_gcn protocol.workers=1

# imdb_b_k2_lp_gcn: 2026-11-16, 1:31 of computing, lpgnn 0.1.0 at fa3dce602b55, settings 804f44b40278, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_lp_gcn protocol.workers=1

# imdb_b_k3_lp_gcn: 2026-11-16, 2:20 of computing, lpgnn 0.1.0 at fa3dce602b55, settings aa7feed1e06a, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_lp_gcn protocol.workers=1

# imdb_b_k5_lp_gcn: 2026-11-16, 6:21 of computing, lpgnn 0.1.0 at fa3dce602b55, settings 1069479e9ee3, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_lp_gcn protocol.workers=1

# imdb_b_k1_lp_gin_control: 2026-11-16, 21 s of computing, lpgnn 0.1.0 at b2a66ec41225, settings ea07c65b7158, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_lp_gin_control protocol.workers=1

# imdb_b_k2_lp_gin_control: 2026-11-16, 36 s of computing, lpgnn 0.1.0 at b2a66ec41225, settings 025ecc9dcde9, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_lp_gin_control protocol.workers=1

# imdb_b_k3_lp_gin_control: 2026-11-16, 52 s of computing, lpgnn 0.1.0 at b2a66ec41225, settings 826e49124904, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_lp_gin_control protocol.workers=1

# imdb_b_k5_lp_gin_control: 2026-11-16, 1:19 of computing, lpgnn 0.1.0 at b2a66ec41225, settings 5f636bc83d01, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_lp_gin_control protocol.workers=1

# imdb_b_k1_lp_gcn_control: 2026-11-16, 1:29 of computing, lpgnn 0.1.0 at 1fa45dccfe89, settings 0d1a93d62ffd, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k1_lp_gcn_control protocol.workers=1

# imdb_b_k2_lp_gcn_control: 2026-11-16, 2:06 of computing, lpgnn 0.1.0 at 1fa45dccfe89, settings 5155e4b51617, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k2_lp_gcn_control protocol.workers=1

# imdb_b_k3_lp_gcn_control: 2026-11-16, 2:20 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings 7109b0b87576, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k3_lp_gcn_control protocol.workers=1

# imdb_b_k5_lp_gcn_control: 2026-11-16, 3:54 of computing, lpgnn 0.1.0 at d2ad7a591fab, settings 13840dcc7af8, first seed 0,
# cpu, torch_scatter, data 898d4141f28c, folds 03ebe5ee0d28, python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6, torch_scatter 2.1.2, machine Linux x86_64
lpgnn train experiment=imdb_b_k5_lp_gcn_control protocol.workers=1
