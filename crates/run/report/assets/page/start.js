// Everything is there: begin.
fillBar();
restyle();
watchSight();
beginLive();
