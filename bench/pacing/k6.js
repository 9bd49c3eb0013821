// The job for k6: a constant arrival rate, each request named by its place in the schedule.
import exec from "k6/execution";
import http from "k6/http";

const connections = Number(__ENV.CONNECTIONS);

export const options = {
  discardResponseBodies: true,
  scenarios: {
    steady: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE),
      timeUnit: "1s",
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: connections,
      maxVUs: connections,
    },
  },
};

export default function () {
  // One name for all: k6 would keep a time series for every path.
  http.get(`http://${__ENV.ORIGIN}/i/${exec.scenario.iterationInTest}`, { tags: { name: "/i" } });
}
